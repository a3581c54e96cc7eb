package torch

import (
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
)

// faulting is a file in which reading the pickle panics, as looking at a part of a mapped
// file does that is gone, while another goroutine reads the byte order.
type faulting struct {
	io.ReaderAt
	pickle, order int // bytes of them
	panics        chan bool
	ended         atomic.Bool
}

func (f *faulting) ReadAt(b []byte, at int64) (int, error) {
	switch len(b) {
	case f.pickle:
		close(f.panics)
		panic("the file became shorter")
	case f.order:
		<-f.panics
		time.Sleep(10 * time.Millisecond)
		f.ended.Store(true)
	}
	return f.ReaderAt.ReadAt(b, at)
}

// TestPanicWaits has no goroutine that looks at a file when its reader was given up: it is
// no longer mapped then.
func TestPanicWaits(t *testing.T) {
	file, err := os.Open("../../fixtures/torch/state.pt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zipdir.Read(file, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	f := &faulting{ReaderAt: file, panics: make(chan bool)}
	for _, m := range archive.Members {
		switch name := m.Name[strings.IndexByte(m.Name, '/')+1:]; name {
		case "data.pkl":
			f.pickle = int(m.Size)
		case "byteorder":
			f.order = int(m.Size)
		}
	}
	defer func() {
		if recover() == nil || !f.ended.Load() {
			t.Errorf("the goroutine has ended: %t", f.ended.Load())
		}
	}()
	_, _ = NewReader(f, info.Size(), "state.pt")
}
