package data

import (
	"io"
	"sync"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Shuffled data sets, in the order that TensorFlow's seeds give.
var shuffleOps = exec.OpTable{
	"ShuffleDataset":            transform(buildShuffle(shuffleArgs{seed: 2, generator: -1, count: -1})),
	"ShuffleDatasetV2":          transform(buildShuffle(shuffleArgs{seed: -1, generator: 2, count: -1})),
	"ShuffleDatasetV3":          transform(buildShuffle(shuffleArgs{seed: 2, generator: 4, count: -1})),
	"ShuffleAndRepeatDataset":   transform(buildShuffle(shuffleArgs{seed: 2, generator: -1, count: 4})),
	"ShuffleAndRepeatDatasetV2": transform(buildShuffle(shuffleArgs{seed: 2, generator: 5, count: 4})),
}

// shuffleArgs are the inputs of a shuffle: the first of two seeds, a generator
// of seeds and the number of rounds; -1 for what there is not.
type shuffleArgs struct{ seed, generator, count int }

// seeds gives each walk through a shuffled data set its seeds: the same ones,
// or others drawn from them.
type seeds struct {
	mu    sync.Mutex
	fixed [2]uint64
	words *philox.Words // nil: the seeds are the same for all
}

func newSeeds(seed, seed2 uint64, change bool) *seeds {
	g := exec.SeededGenerator(seed, seed2)
	s := &seeds{fixed: [2]uint64{seed, seed2}}
	if change {
		s.words = philox.NewWords(&g)
	}
	return s
}

func (s *seeds) next() (uint64, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.words == nil {
		return s.fixed[0], s.fixed[1]
	}
	a := uint64(s.words.Next())
	return a, uint64(s.words.Next())
}

// begin returns the stream of the next walk or round.
func (s *seeds) begin() *philox.Words {
	g := exec.SeededGenerator(s.next())
	return philox.NewWords(&g)
}

// save writes where the stream of seeds is. Each walk does so, though several
// may share the seeds: to open a walk draws from them, so each load puts them
// back.
func (s *seeds) save(w *variant.StateWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Bool(s.words != nil) {
		w.Words(s.words)
		return
	}
	w.Int(int(s.fixed[0]))
	w.Int(int(s.fixed[1]))
}

func (s *seeds) load(r *variant.StateReader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if changes := r.Bool(); changes != (s.words != nil) {
		r.Fail("whether each round is shuffled in another order has changed")
		return
	}
	if s.words != nil {
		r.Words(s.words)
		return
	}
	s.fixed = [2]uint64{uint64(r.Int()), uint64(r.Int())}
}

func buildSeedGenerator(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		s := newSeeds(uint64(c.MustInt(0, "the seed")), uint64(c.MustInt(1, "the second seed")), c.MustBool(2, "reshuffle"))
		c.SetHandle(0, s)
		c.SetVariant(1, nil)
		return nil
	}, nil
}

func buildShuffle(at shuffleArgs) func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		change := b.BoolOr("reshuffle_each_iteration", true)
		return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
			size, rounds := c.MustInt(1, "the size of the buffer"), 1
			if size == 0 || size < -1 {
				return nil, c.Invalid("a buffer of %d elements", size)
			}
			if at.count >= 0 {
				rounds = c.MustInt(at.count, "the number of rounds")
			}
			var s *seeds
			if at.generator >= 0 {
				s, _ = c.In(at.generator).Value.(*seeds)
			}
			if s == nil && at.seed >= 0 {
				s = newSeeds(uint64(c.MustInt(at.seed, "the seed")), uint64(c.MustInt(at.seed+1, "the second seed")), change)
			}
			if s == nil {
				return nil, c.Invalid("the generator of seeds is none")
			}
			in := &walked{Dataset: of}
			return variant.OpenFunc(func(*variant.IteratorContext) (variant.Iterator, error) {
				return &shuffleIterator{walk: in.begin(), size: size, rounds: rounds, seeds: s, words: s.begin(), slices: []span{{}}}, nil
			}), nil
		}
	}
}

// shuffleIterator keeps a buffer filled and draws from it. The buffer is a ring; a
// span of it belongs to each round, and all of one comes before the next.
type shuffleIterator struct {
	walk   lastWalk
	size   int // -1: of any size
	rounds int // left; negative: no end
	seeds  *seeds
	words  *philox.Words // of the round that is being drawn from
	ring   []variant.Tuple
	slices []span
	count  int
	ended  bool
	some   bool // the round had an element

	pulled pulled
	ahead  int // elements that will be drawn after the next one, in the same call
}

// pulled are elements that were read at once, to be added to the buffer in the same
// call, and the error after them.
type pulled struct {
	list []variant.Tuple
	err  error
}

// pull returns the next element of the walk.
func (s *shuffleIterator) pull(p *variant.IteratorContext) (variant.Tuple, error) {
	if len(s.pulled.list) == 0 && s.pulled.err == nil {
		want := mostAtOnce
		if s.size >= 0 {
			want = min(want, s.size-s.count+s.ahead)
		}
		s.pulled.list, s.pulled.err = nextN(p, s.walk.in, want)
	}
	if len(s.pulled.list) == 0 {
		err := s.pulled.err
		s.pulled.err = nil
		return nil, err
	}
	el := s.pulled.list[0]
	s.pulled.list = s.pulled.list[1:]
	return el, nil
}

// NextN implements [atOnce]: all that is read at once is drawn from in the same call.
func (s *shuffleIterator) NextN(p *variant.IteratorContext, n int) (list []variant.Tuple, err error) {
	defer func() { s.ahead = 0 }()
	for len(list) < n {
		s.ahead = n - len(list) - 1
		el, err := s.Next(p)
		if err != nil {
			return list, err
		}
		list = append(list, el)
	}
	return list, nil
}

// maxRounds is how many rounds the buffer holds at most, for data sets that are
// much smaller than it.
const maxRounds = 3

// span is a part of the ring, by numbers that are not taken modulo its size.
type span struct{ start, end int }

func (s *shuffleIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if err := s.fill(p); err != nil {
		return nil, err
	}
	if s.count == 0 {
		return nil, io.EOF
	}
	for s.slices[0].start == s.slices[0].end {
		s.slices = s.slices[1:]
		s.words = s.seeds.begin()
	}
	first := &s.slices[0]
	n := len(s.ring)
	i := (first.start + int(s.words.Next())%(first.end-first.start)) % n
	el := s.ring[i]
	s.ring[i] = s.ring[first.start%n]
	s.ring[first.start%n] = nil
	first.start++
	s.count--
	return el, nil
}

// fill reads elements until the buffer is full or there are no more.
func (s *shuffleIterator) fill(p *variant.IteratorContext) error {
	for !s.ended && (s.size < 0 || s.count < s.size) && (len(s.slices) <= maxRounds || s.count == 0) {
		if s.walk.in == nil {
			if s.rounds == 0 {
				s.ended = true
				return nil
			}
			if err := s.walk.open(p); err != nil {
				return err
			}
			s.some = false
		}
		el, err := s.pull(p)
		if err == io.EOF {
			s.endRound()
			continue
		}
		if err != nil {
			return err
		}
		p.Hold(el.Bytes())
		s.add(el)
	}
	return nil
}

func (s *shuffleIterator) endRound() {
	s.walk.end()
	if s.rounds > 0 {
		s.rounds--
	}
	if !s.some {
		s.rounds = 0 // an empty data set has no end of rounds
	}
	end := s.slices[len(s.slices)-1].end
	s.slices = append(s.slices, span{end, end})
}

func (s *shuffleIterator) add(el variant.Tuple) {
	last := &s.slices[len(s.slices)-1]
	if s.count == len(s.ring) {
		s.grow()
	}
	s.ring[last.end%len(s.ring)] = el
	last.end++
	s.count++
	s.some = true
}

func (s *shuffleIterator) Save(w *variant.StateWriter) {
	w.Kind("shuffle")
	s.seeds.save(w)
	w.Words(s.words)
	w.Int(s.rounds)
	w.Bool(s.ended)
	w.Bool(s.some)
	w.Int(len(s.slices))
	for _, sp := range s.slices {
		w.Int(sp.end - sp.start)
		for i := sp.start; i < sp.end; i++ {
			w.Tuple(s.ring[i%len(s.ring)])
		}
	}
	s.walk.save(w)
}

func (s *shuffleIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("shuffle")
	s.seeds.load(r)
	r.Words(s.words)
	s.rounds, s.ended, s.some = r.Int(), r.Bool(), r.Bool()
	s.slices, s.ring, s.count = nil, nil, 0
	for range r.Count() {
		s.slices = append(s.slices, span{len(s.ring), len(s.ring)})
		for range r.Count() {
			s.ring = append(s.ring, r.Tuple())
		}
		s.slices[len(s.slices)-1].end = len(s.ring)
	}
	s.count = len(s.ring)
	if len(s.slices) == 0 || s.size > 0 && s.count > s.size {
		r.Fail("the buffer has %d elements, and room for %d", s.count, s.size)
		return
	}
	s.walk.load(p, r)
}

// grow makes the ring larger, up to the size of the buffer.
func (s *shuffleIterator) grow() {
	n := max(16, 2*len(s.ring))
	if s.size > 0 {
		n = min(n, s.size)
	}
	ring := make([]variant.Tuple, n)
	for _, sp := range s.slices {
		for i := sp.start; i < sp.end; i++ {
			ring[i%n] = s.ring[i%len(s.ring)]
		}
	}
	s.ring = ring
}
