package formats_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
)

// TestCutWhileOpened has files that another program cuts while they are opened, which are
// in memory meanwhile: that is an error, or comes too late to matter, and never a signal.
func TestCutWhileOpened(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "model.ckpt")
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := w.Add(fmt.Sprintf("model/layer_%05d/%0600d", i, i), ckptfmt.Scalar(int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"m.npz", "m.pt", "m.safetensors", "m.h5"} {
		t.Run(name, func(t *testing.T) {
			name := filepath.Join(dir, name)
			convert(t, prefix, name)
			whole, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := formats.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(whole) < 1<<20 {
				t.Fatalf("it has %d bytes, too few to be mapped", len(whole))
			}
			for range cuts {
				if err := os.WriteFile(name, whole, 0o600); err != nil {
					t.Fatal(err)
				}
				cut := make(chan error)
				go func() {
					time.Sleep(time.Duration(rnd.IntN(3000)) * time.Microsecond)
					cut <- os.Truncate(name, rnd.Int64N(int64(len(whole))))
				}()
				if r, err := f.Open(); err == nil {
					r.Close()
				}
				if err := <-cut; err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

const cuts = 10 // 2,000 of each found nothing

func convert(t *testing.T, from, to string) {
	t.Helper()
	s, err := rewrite.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := rewrite.Write(t.Context(), s, to, nil); err != nil {
		t.Fatal(err)
	}
}
