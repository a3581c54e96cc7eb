package coord

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// routine is one goroutine of a Coordinator.
type routine struct {
	name    string
	started time.Time
	id      atomic.Int64 // the runtime's number, to find the stack; 0 until it runs
	done    chan struct{}
}

func newRoutine(name string) *routine {
	return &routine{name: name, started: time.Now(), done: make(chan struct{})}
}

// Detached is a goroutine whose owner waits for it only for a limited time,
// such as a save to a disk that may hang. [Detach] starts it.
type Detached struct {
	routine *routine
	err     error // once the routine is done
}

// Detach calls f in its own goroutine. A panic of f becomes a *PanicError.
func Detach(name string, f func() error) *Detached {
	d := &Detached{routine: newRoutine(name)}
	go func() {
		defer close(d.routine.done)
		d.routine.id.Store(goroutineID())
		d.err = Guard(name, f)
	}()
	return d
}

// Wait waits until f has returned, and returns its error.
func (d *Detached) Wait() error {
	<-d.routine.done
	return d.err
}

// Done is closed when f has returned.
func (d *Detached) Done() <-chan struct{} { return d.routine.done }

// DoneWithin reports whether f has returned by the end of a grace period.
func (d *Detached) DoneWithin(grace time.Duration) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-d.routine.done:
		return true
	case <-timer.C:
		return false
	}
}

// Straggling returns the error that says where f is after a grace period.
func (d *Detached) Straggling(grace time.Duration) *StopError {
	return newStopError(grace, []*routine{d.routine})
}

// Straggler is a goroutine that did not end within the grace period.
type Straggler struct {
	Name  string
	Age   time.Duration // since it was started
	Stack string        // where it was when the grace period ended
}

// StopError says which goroutines were still running when the grace period of a stop
// was over. They may still be running and using their resources.
type StopError struct {
	Grace      time.Duration
	Stragglers []Straggler // ordered by name
}

func newStopError(grace time.Duration, left []*routine) *StopError {
	stacks := stacks()
	e := &StopError{Grace: grace}
	for _, r := range left {
		e.Stragglers = append(e.Stragglers, Straggler{
			Name:  r.name,
			Age:   time.Since(r.started),
			Stack: stacks[r.id.Load()],
		})
	}
	slices.SortStableFunc(e.Stragglers, func(a, b Straggler) int { return cmp.Compare(a.Name, b.Name) })
	return e
}

func (e *StopError) Error() string {
	var names []string
	for _, s := range e.Stragglers {
		name := s.Name
		if at := stuckIn(s.Stack); at != "" {
			name += " (in " + at + ")"
		}
		names = append(names, name)
	}
	return fmt.Sprintf("stopped with goroutines still running after %v: %s", e.Grace, strings.Join(names, ", "))
}

// stuckIn returns the innermost function of a stack that is not in the standard library, because
// that is the one the reader knows.
func stuckIn(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 1; i < len(lines); i += 2 { // a line for the function, one for its place
		f := lines[i]
		if open := strings.LastIndexByte(f, '('); open > 0 {
			f = f[:open]
		}
		first, _, _ := strings.Cut(f, "/")
		if strings.HasPrefix(f, "main.") || strings.Contains(f, "/") && strings.Contains(first, ".") {
			return f
		}
	}
	return ""
}

// PanicError is a panic of a service or of the training function. A run that
// ends with one writes no final checkpoint: the panicking code may have left
// values half changed.
type PanicError struct {
	Name  string // of the goroutine
	Value any
	Stack string
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s panicked: %v", e.Name, e.Value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit is the value of the [PanicError] of a function that never returned.
var ErrGoexit = errors.New("runtime.Goexit was called")

// Guard calls f and turns a panic into a *PanicError. It does not return
// if f calls runtime.Goexit.
func Guard(name string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Name: name, Value: v, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// goroutineID returns the number that the runtime prints for the calling
// goroutine. It serves only to find the goroutine's stack in a dump.
func goroutineID() int64 {
	var buf [64]byte
	id, _ := parseGoroutineID(buf[:runtime.Stack(buf[:], false)])
	return id
}

func parseGoroutineID(stack []byte) (int64, bool) {
	rest, ok := bytes.CutPrefix(stack, []byte("goroutine "))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(string(digits), 10, 64)
	return id, err == nil
}

// maxStackDump bounds the dump of all stacks.
const maxStackDump = 16 << 20

// stacks returns the stacks of all goroutines, by the runtime's number.
func stacks() map[int64]string {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) && len(buf) < maxStackDump {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	stacks := make(map[int64]string)
	for s := range bytes.SplitSeq(buf[:n], []byte("\n\n")) {
		if id, ok := parseGoroutineID(s); ok {
			stacks[id] = string(s)
		}
	}
	return stacks
}
