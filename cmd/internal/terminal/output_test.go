package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

// full takes so many writes, then none.
type full struct {
	room int
	err  error
}

func (f *full) Write(b []byte) (int, error) {
	if f.room--; f.room < 0 {
		return 0, f.err
	}
	return len(b), nil
}

func TestOutputKeepsTheFirstError(t *testing.T) {
	f := &full{room: 1, err: errors.New("full")}
	o := NewOutput(f)
	fmt.Fprint(o, "a")
	if o.Err() != nil {
		t.Errorf("err = %v before the disk is full", o.Err())
	}
	fmt.Fprint(o, "b")
	first := f.err
	f.err = errors.New("another")
	fmt.Fprint(o, "c")
	if o.Err() != first {
		t.Errorf("err = %v, want %v", o.Err(), first)
	}
}

func TestBeneath(t *testing.T) {
	var b bytes.Buffer
	for _, w := range []io.Writer{&b, NewOutput(&b)} {
		if Beneath(w) != io.Writer(&b) {
			t.Errorf("beneath %T is %T", w, Beneath(w))
		}
	}
	if Is(NewOutput(os.Stdin)) != Is(os.Stdin) || Width(NewOutput(os.Stdin)) != Width(os.Stdin) {
		t.Error("an output to a terminal is none")
	}
}
