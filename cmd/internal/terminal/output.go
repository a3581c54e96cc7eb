package terminal

import (
	"io"
	"sync"
)

// Output is the standard output of a command. It keeps the first error, for not all
// that writes there can return one: what prints help does not, and a table of many
// lines need not ask at each. A command whose output is lost has failed, whatever it
// found. It is safe for concurrent use.
type Output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// NewOutput returns an output to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write implements [io.Writer].
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// Err returns the first error of a write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Beneath returns what the writer writes to.
func (o *Output) Beneath() io.Writer { return o.w }

// Beneath returns what an [Output], or another writer with a method of this name, writes
// to, and any other writer itself: for what outlives its reader, and for programs that are
// to have the file.
func Beneath(w io.Writer) io.Writer {
	for {
		o, ok := w.(interface{ Beneath() io.Writer })
		if !ok {
			return w
		}
		w = o.Beneath()
	}
}
