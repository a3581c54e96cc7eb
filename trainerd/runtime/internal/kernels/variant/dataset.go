package variant

import (
	"io"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Dataset is a description of elements. It does not change.
type Dataset interface {
	// MakeIterator starts a new walk.
	MakeIterator(p *IteratorContext) (Iterator, error)
}

// Iterator is a walk through a data set. io.EOF ends it.
type Iterator interface {
	Next(p *IteratorContext) (Tuple, error)
	// Save writes where the walk is, so that load, on a new walk through the
	// same data set, continues there.
	Save(w *StateWriter)
	Load(p *IteratorContext, r *StateReader)
}

// OpenFunc is a data set that is the function that opens it.
type OpenFunc func(p *IteratorContext) (Iterator, error)

// MakeIterator implements [Dataset].
func (f OpenFunc) MakeIterator(p *IteratorContext) (Iterator, error) { return f(p) }

// IteratorContext is the call for whose sake elements are made. It runs functions apart
// from the run that it is part of, and without the state lock of that one.
type IteratorContext struct {
	*exec.KernelContext
	Files *FileSet
	// Help is where a call ahead looks for help; nil in other calls.
	Help *Help
}

// Run does a job in at most so many parts.
func (p *IteratorContext) Run(parts int, job parallel.Job) {
	if p.Help != nil {
		p.Help.run(parts, job)
		return
	}
	parallel.Run(parts, job)
}

// Help brings a run that waits for an element to the call that makes it. Until then
// that call has one processor, so that it takes none from the step that runs.
type Help struct {
	jobs chan func()
	busy atomic.Bool // a job is under way
}

// NewHelp returns a Help.
func NewHelp() *Help { return &Help{jobs: make(chan func(), 1)} }

// Jobs is where the work comes from.
func (h *Help) Jobs() <-chan func() { return h.jobs }

// run does a job, and any that is within another one alone.
func (h *Help) run(parts int, job parallel.Job) {
	if !h.busy.CompareAndSwap(false, true) {
		job.Part(0, 1)
		return
	}
	defer h.busy.Store(false)
	left := make(chan struct{})
	h.jobs <- func() {
		defer close(left)
		parallel.Run(max(1, min(parts, runtime.GOMAXPROCS(0)-1)), job)
	}
	defer func() { // also if the job bails out
		select {
		case <-h.jobs: // nobody came
		default:
			<-left
		}
	}()
	job.Part(0, 1)
}

// Described is a data set, how many elements it has, and what calls of its functions would
// see that come before an element is asked for.
type Described struct {
	Dataset
	Count int // negative where it is no number
	// Later is what the functions access; see [exec.OpConstruction.Later].
	Later exec.OpFlags
	// Shared are the nodes whose data sets keep something from walk to walk: "" for
	// those of functions.
	Shared []string
}

// FileSet closes the files of an iterator that stops before their end.
type FileSet struct {
	mu     sync.Mutex
	open   map[io.Closer]bool
	closed bool
	waits  bool
}

// MayWait reports whether there was a file that may have nothing to read yet, such as a
// pipe.
func (s *FileSet) MayWait() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits
}

// Add adds a file, which is closed at once if the set is.
func (s *FileSet) Add(f io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		f.Close()
		return
	}
	if of, ok := f.(interface{ Stat() (fs.FileInfo, error) }); ok && !s.waits {
		info, err := of.Stat()
		s.waits = err != nil || !info.Mode().IsRegular()
	}
	if s.open == nil {
		s.open = map[io.Closer]bool{}
	}
	s.open[f] = true
}

// Remove closes a file before the others.
func (s *FileSet) Remove(f io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, f)
	f.Close()
}

// Close closes all files.
func (s *FileSet) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for f := range s.open {
		f.Close()
	}
	s.open = nil
}

// TupleList is a data set of elements by number.
type TupleList struct {
	n  int
	at func(i int) Tuple
}

// NewTupleList returns a data set of n elements.
func NewTupleList(n int, at func(i int) Tuple) Dataset { return &TupleList{n, at} }

// Len is the number of elements.
func (l *TupleList) Len() int { return l.n }

// MakeIterator implements [Dataset].
func (l *TupleList) MakeIterator(*IteratorContext) (Iterator, error) {
	return &tupleListIterator{of: l}, nil
}

type tupleListIterator struct {
	of *TupleList
	i  int
}

func (l *tupleListIterator) Next(*IteratorContext) (Tuple, error) {
	if l.i >= l.of.n {
		return nil, io.EOF
	}
	l.i++
	return l.of.at(l.i - 1), nil
}

func (l *tupleListIterator) Save(w *StateWriter) {
	w.Kind("list")
	w.Int(l.i)
}

func (l *tupleListIterator) Load(_ *IteratorContext, r *StateReader) {
	r.Kind("list")
	if l.i = r.Int(); l.i < 0 || l.i > l.of.n {
		r.Fail("element %d was next, of %d that there are now", l.i, l.of.n)
	}
}
