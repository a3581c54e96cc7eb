package exec

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
	"github.com/trainerd/trainerd/trainerd/session"
)

// RandomStream is the random stream of one node. It is guarded by Resources.state.
type RandomStream struct {
	path        string
	seed, seed2 uint64
	gen         philox.Generator
	// kept says that the position belongs into snapshots: the node ran in
	// more than the runs that first initialise variables.
	kept bool
}

// RandomStream returns the stream of the builder's node, made at first use.
func (b *OpConstruction) RandomStream() *RandomStream {
	return b.stream(uint64(b.Int("seed")), uint64(b.Int("seed2")))
}

// UnseededStream is RandomStream for an op without attributes for seeds.
func (b *OpConstruction) UnseededStream() *RandomStream { return b.stream(0, 0) }

func (b *OpConstruction) stream(seed, seed2 uint64) *RandomStream {
	b.draws = true
	b.sess.mu.Lock()
	defer b.sess.mu.Unlock()
	return b.sess.streamAt(b.path, seed, seed2)
}

// streamAt returns or makes a stream; the caller holds s.mu.
func (s *Session) streamAt(path string, seed, seed2 uint64) *RandomStream {
	if st, ok := s.streams[path]; ok {
		return st
	}
	st := &RandomStream{path: path, seed: seed, seed2: seed2}
	if s.observes {
		st.gen = observerSeeded(st, s.observed)
	} else {
		st.gen = SeededGenerator(seed, seed2)
	}
	s.streams[path] = st
	return st
}

// SeededGenerator returns the stream of two seeds. Two zeros ask for one that
// nobody can repeat.
func SeededGenerator(seed, seed2 uint64) philox.Generator {
	if seed == 0 && seed2 == 0 {
		var b [16]byte
		crand.Read(b[:])
		seed, seed2 = binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
	}
	return philox.New(seed, seed2)
}

// Draw returns the generator of a stream, and notes that the run draws from it.
func (c *KernelContext) Draw(st *RandomStream) *philox.Generator {
	if own := c.run.streams; own != nil {
		return own.generator(st)
	}
	c.run.drawn = append(c.run.drawn, st)
	return &st.gen
}

// settleStreams decides which streams of a finished run belong into
// snapshots. A run that gave a variable its first value drew the initial
// values; those nodes do not run again, and a checkpoint without their
// positions is the one TensorFlow would have written.
func (r *run) settleStreams() {
	if r.inited.Load() {
		return
	}
	for _, st := range r.drawn {
		st.kept = true
	}
}

// streamPrefix begins the names of stream positions in snapshots. The value is
// the bits of the counter's four words and of the key's two, in a type that both
// formats of checkpoints hold.
const streamPrefix = session.StatePrefix + "random/"

func (s *Session) saveStreams() []ckptfmt.NamedTensor {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []ckptfmt.NamedTensor
	for path, st := range s.streams {
		if !st.kept {
			continue
		}
		list = append(list, ckptfmt.NamedTensor{Name: streamPrefix + path,
			Tensor: &ckptfmt.Tensor{DType: Int32, Shape: []int64{positionSize / 4}, Data: appendPosition(nil, &st.gen)}})
	}
	slices.SortFunc(list, func(a, b ckptfmt.NamedTensor) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *Session) checkStream(nv ckptfmt.NamedTensor) error {
	if !strings.HasPrefix(nv.Name, streamPrefix) {
		return nil
	}
	if nv.Tensor.DType != Int32 || len(nv.Tensor.Data) != positionSize {
		return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("restoring %q: it is not the position of a random stream", nv.Name)}
	}
	return nil
}

// restoreStream sets a stream's position. The node may not have been compiled
// yet, so the stream is made if need be; one that no node asks for is inert.
func (s *Session) restoreStream(nv ckptfmt.NamedTensor) {
	path, ok := strings.CutPrefix(nv.Name, streamPrefix)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streamAt(path, 1, 0)
	setPosition(&st.gen, nv.Tensor.Data)
	st.kept = true
}

// MarkStreams returns a function that puts back the random streams that the
// call draws from until then.
func (c *KernelContext) MarkStreams() (putBack func()) {
	r := c.run
	r.acquire()
	before, drawn := r.sess.positions(), len(r.drawn)
	r.releaseLock()
	return func() {
		r.acquire()
		defer r.releaseLock()
		for _, st := range r.drawn[drawn:] {
			if gen, ok := before[st]; ok {
				st.gen = gen
			}
		}
		r.drawn = r.drawn[:drawn]
	}
}

// positions returns where all streams are. The caller holds Resources.state.
func (s *Session) positions() map[*RandomStream]philox.Generator {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := make(map[*RandomStream]philox.Generator, len(s.streams))
	for _, st := range s.streams {
		at[st] = st.gen
	}
	return at
}

// observerSeeded returns the generator of an observer's stream. It has nothing
// in common with the training's, whatever the seeds.
func observerSeeded(st *RandomStream, step int64) philox.Generator {
	var b []byte
	for _, word := range []uint64{st.seed, st.seed2, uint64(step)} {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	sum := sha256.Sum256(append(b, st.path...))
	return philox.New(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16]))
}

// SeedObserver puts all random streams of an observer at the beginning of those
// for a step: what it draws from then on is a function of the graph's seeds and
// the step alone. Ops without a seed draw the same for the same step too. It
// must not be called during a run of the observer.
func (s *Session) SeedObserver(step int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed = step
	for _, st := range s.streams {
		st.gen = observerSeeded(st, step)
	}
}
