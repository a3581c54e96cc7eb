package data

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

var iteratorOps = exec.OpTable{
	"Iterator":                   {Flags: exec.Stateful, Build: buildIterator},
	"IteratorV2":                 {Flags: exec.Stateful, Build: buildIterator},
	"AnonymousIteratorV2":        {Flags: exec.Stateful, Build: buildAnonymousIterator},
	"AnonymousIteratorV3":        {Flags: exec.Stateful, Build: buildAnonymousIterator},
	"DeleteIterator":             {Flags: exec.Stateful, Build: exec.WithoutAttrs(deleteIterator)},
	"OneShotIterator":            {Flags: exec.Stateful, Build: buildOneShotIterator},
	"MakeIterator":               {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: exec.WithoutAttrs(makeIterator)},
	"IteratorGetNext":            {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildGetNext},
	"IteratorGetNextSync":        {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildGetNext},
	"IteratorGetNextAsOptional":  {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildGetNextAsOptional},
	"IteratorToStringHandle":     {Flags: exec.Stateful, Build: exec.WithoutAttrs(iteratorToString)},
	"IteratorFromStringHandle":   {Flags: exec.Stateful, Build: buildIteratorFromString},
	"IteratorFromStringHandleV2": {Flags: exec.Stateful, Build: buildIteratorFromString},
	"DatasetToSingleElement":     {Flags: exec.Stateful | exec.Blocking, Build: buildSingleElement},
	"ReduceDataset":              {Flags: exec.Stateful | exec.Blocking, Build: buildReduceDataset},
}

// iteratorResource is a place in a data set. One call moves it at a time: that of a run,
// or one ahead of the runs.
type iteratorResource struct {
	name  string
	types []tfpb.DataType // of an element's components
	turn  chan struct{}
	help  *variant.Help // for a call ahead
	// first makes the data set of an iterator that nothing else initialises.
	first  *exec.Plan
	data   variant.Dataset // that the walk is through; nil before the first
	source variant.Iterator
	// streams are what its functions draw from: as in TensorFlow, each walk begins at
	// their seeds.
	streams *exec.Streams
	files   *variant.FileSet
	ended   bool

	short bool          // it ends with its run
	early bool          // elements may be made before a run asks for them
	made  *madeElement  // ahead; nil for none
	took  time.Duration // to make the last element

	mu      sync.Mutex
	unread  []variant.Tuple // given out to runs that were cancelled, to come first; guarded by mu
	pending []byte          // the state to continue from, once there is a data set
	log     *slog.Logger
}

func newIterator(name string) *iteratorResource {
	it := &iteratorResource{name: name, turn: make(chan struct{}, 1), help: variant.NewHelp(), files: &variant.FileSet{}}
	it.turn <- struct{}{}
	return it
}

// Close closes the files that the iterator reads, unless a call is reading: then
// they end with it.
func (it *iteratorResource) Close() error {
	select {
	case <-it.turn:
		it.files.Close()
		it.turn <- struct{}{}
	default:
	}
	return nil
}

func declareIterator(b *exec.OpConstruction) *iteratorResource {
	types := b.Types("output_types")
	return b.Resource(exec.KindIterator, func(name string) any {
		it := newIterator(name)
		it.types = types
		return it
	}).(*iteratorResource)
}

func buildIterator(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.HandleKernel(declareIterator(b)), nil
}

// buildAnonymousIterator builds the op whose every run makes an iterator, which functions of
// TensorFlow 2 do for their own loops. Nothing is made ahead for it, as nobody may ask for more.
func buildAnonymousIterator(b *exec.OpConstruction) (exec.Kernel, error) {
	name, types := b.Name(), b.Types("output_types")
	return func(c *exec.KernelContext) error {
		it := newIterator(name)
		it.types, it.short = types, true
		c.SetHandle(0, it)
		if c.NumOutputs() > 1 {
			c.SetVariant(1, nil)
		}
		return nil
	}, nil
}

func deleteIterator(c *exec.KernelContext) error {
	it, err := iteratorOf(c, 0)
	if err != nil {
		return err
	}
	return it.Close()
}

func buildOneShotIterator(b *exec.OpConstruction) (exec.Kernel, error) {
	p := elementFunction(b, "dataset_factory")
	if b.Err() != nil {
		return nil, b.Err()
	}
	it := declareIterator(b)
	return func(c *exec.KernelContext) error {
		back, err := c.AcquireToken(it.turn)
		if err != nil {
			return err
		}
		it.first = p
		back()
		return exec.HandleKernel(it)(c)
	}, nil
}

func iteratorOf(c *exec.KernelContext, i int) (*iteratorResource, error) {
	it, ok := c.In(i).Value.(*iteratorResource)
	if !ok {
		return nil, c.Invalid("input %d is not an iterator", i)
	}
	return it, nil
}

// withIterators calls f apart from the run, with what walks through data sets need.
func withIterators(c *exec.KernelContext, files *variant.FileSet, f func(p *variant.IteratorContext) error) error {
	return c.Detached(func(sub *exec.KernelContext) error {
		return f(&variant.IteratorContext{KernelContext: sub, Files: files})
	})
}

// start begins a walk through d. The caller has the iterator's turn.
func (it *iteratorResource) start(p *variant.IteratorContext, d variant.Dataset) error {
	it.files.Close()
	it.files = &variant.FileSet{}
	p.Files = it.files
	it.forget()
	var err error
	it.data, it.early = d, !it.short && it.mayBeEarly(p, d)
	it.source, err = d.MakeIterator(p)
	return err
}

func makeIterator(c *exec.KernelContext) error {
	d, err := dataset(c, 0)
	if err != nil {
		return err
	}
	it, err := iteratorOf(c, 1)
	if err != nil {
		return err
	}
	back, err := c.AcquireOrHelp(it.turn, it.help.Jobs())
	if err != nil {
		return err
	}
	defer back()
	c.MarkEffect()
	return withIterators(c, it.files, func(p *variant.IteratorContext) error { return it.start(p, d) })
}

// element returns the next element; io.EOF when there is none.
func (it *iteratorResource) element(c *exec.KernelContext) (el variant.Tuple, err error) {
	back, err := c.AcquireOrHelp(it.turn, it.help.Jobs())
	if err != nil {
		return nil, err
	}
	taken := false
	defer func() {
		if !taken || !it.makeNext(c, back) {
			back()
		}
	}()
	err = withIterators(c, it.files, func(p *variant.IteratorContext) error {
		if err := it.ready(c, p); err != nil {
			return err
		}
		if el = it.firstUnread(); el != nil {
			return nil
		}
		if it.ended {
			return io.EOF
		}
		if it.made != nil {
			el, err = it.takeMade()
		} else {
			el, err = it.next(p)
		}
		it.ended = err == io.EOF
		return err
	})
	if err == nil {
		c.Take(&takenElement{it, el})
		taken = true
	}
	return el, err
}

// takenElement is an element that a run has taken.
type takenElement struct {
	iterator *iteratorResource
	element  variant.Tuple
}

func (t *takenElement) GiveBack() {
	it := t.iterator
	it.mu.Lock()
	defer it.mu.Unlock()
	it.unread = append([]variant.Tuple{t.element}, it.unread...)
}

// firstUnread returns the first element that was given back, nil if there is none.
func (it *iteratorResource) firstUnread() (el variant.Tuple) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if len(it.unread) > 0 {
		el, it.unread = it.unread[0], it.unread[1:]
	}
	return el
}

// forget drops what was made and not used.
func (it *iteratorResource) forget() {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.ended, it.made, it.unread, it.streams = false, nil, nil, &exec.Streams{}
}

// ready makes sure that there is an iterator to take elements from.
func (it *iteratorResource) ready(c *exec.KernelContext, p *variant.IteratorContext) error {
	if it.pending != nil && (it.data != nil || it.first != nil) {
		return it.resume(c, p)
	}
	if it.source == nil && (it.data != nil || it.first != nil) {
		return it.begin(p)
	}
	if it.source == nil {
		return c.Errorf(tfpb.Code_FAILED_PRECONDITION, "iterator %q was not initialised: run its initializer before the first element is taken", it.name)
	}
	return nil
}

// begin makes the data set that the graph has for the iterator, or takes the
// one it had, and begins to walk through it.
func (it *iteratorResource) begin(p *variant.IteratorContext) error {
	d := it.data
	if it.first != nil {
		var err error
		if d, err = (&capturedFunction{plan: it.first}).datasetOf(p, nil); err != nil {
			return err
		}
	}
	return it.start(p, d)
}

// outputElement makes the tensors of an element outputs.
func outputElement(c *exec.KernelContext, el variant.Tuple, types []tfpb.DataType) error {
	if len(el) != len(types) {
		return c.Invalid("an element has %d components, not %d", len(el), len(types))
	}
	for i, t := range el {
		if t.DType != types[i] {
			return c.Invalid("component %d of an element is %s, not %s", i, t.Describe(), exec.TypeName(types[i]))
		}
		c.Alias(i, t, t.Shape)
	}
	return nil
}

func buildGetNext(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("output_types")
	return func(c *exec.KernelContext) error {
		it, err := iteratorOf(c, 0)
		if err != nil {
			return err
		}
		el, err := it.element(c)
		if err == io.EOF {
			return c.Errorf(tfpb.Code_OUT_OF_RANGE, "end of sequence of iterator %q", it.name)
		}
		if err != nil {
			return err
		}
		return outputElement(c, el, types)
	}, nil
}

func buildGetNextAsOptional(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		it, err := iteratorOf(c, 0)
		if err != nil {
			return err
		}
		el, err := it.element(c)
		if err != nil && err != io.EOF {
			return err
		}
		c.SetVariant(0, &variant.Optional{Set: err == nil, Values: el})
		return nil
	}, nil
}

// The text of an iterator's handle is its name; it is good for the
// sessions that share the iterator.
func iteratorToString(c *exec.KernelContext) error {
	it, err := iteratorOf(c, 0)
	if err != nil {
		return err
	}
	c.PutResource(iteratorKey(it.name), it)
	c.Out(0, exec.String).Strings[0] = []byte(it.name)
	return nil
}

func buildIteratorFromString(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("output_types")
	return func(c *exec.KernelContext) error {
		name, err := c.StringScalar(0, "the handle")
		if err != nil {
			return err
		}
		it, ok := c.LookupResource(iteratorKey(name)).(*iteratorResource)
		if !ok {
			return c.Invalid("%q is not the handle of an iterator here", name)
		}
		if len(types) > 0 && !slices.Equal(types, it.types) {
			return c.Invalid("the elements of iterator %q are %v, not %v", name, it.types, types)
		}
		return exec.HandleKernel(it)(c)
	}, nil
}

func iteratorKey(name string) string { return "iterator handle\x00" + name }

func buildSingleElement(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("output_types")
	return func(c *exec.KernelContext) error {
		d, err := dataset(c, 0)
		if err != nil {
			return err
		}
		files := &variant.FileSet{}
		defer files.Close()
		var el variant.Tuple
		err = withIterators(c, files, func(p *variant.IteratorContext) error {
			s, err := d.MakeIterator(p)
			if err != nil {
				return err
			}
			if el, err = s.Next(p); err == io.EOF {
				return c.Invalid("the data set is empty")
			} else if err != nil {
				return err
			}
			if _, err = s.Next(p); err == nil {
				return c.Invalid("the data set has more than one element")
			}
			if err == io.EOF {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		return outputElement(c, el, types)
	}, nil
}

// buildReduceDataset builds the op that folds a data set into a state.
func buildReduceDataset(b *exec.OpConstruction) (exec.Kernel, error) {
	f, n := elementFunction(b, "f"), len(b.Types("Tstate"))
	types := b.Types("output_types")
	return func(c *exec.KernelContext) error {
		d, err := dataset(c, 0)
		if err != nil {
			return err
		}
		if n > c.NumInputs()-1 {
			return c.Invalid("%d states in %d inputs", n, c.NumInputs()-1)
		}
		state, fn := copies(c, 1, 1+n), capture(c, f, 1+n, c.NumInputs())
		files := &variant.FileSet{}
		defer files.Close()
		err = withIterators(c, files, func(p *variant.IteratorContext) error {
			s, err := d.MakeIterator(p)
			if err != nil {
				return err
			}
			for {
				el, err := s.Next(p)
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
				if state, err = fn.apply(p, append(append(variant.Tuple{}, state...), el...)); err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
		return outputElement(c, state, types)
	}, nil
}
