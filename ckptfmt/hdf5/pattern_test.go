package hdf5

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
)

// TestHeadersAlike reads the header of each dataset once more, message by message.
func TestHeadersAlike(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/*/*.h5")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		r, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.checkForms(t)
		r.checkInfo(t)
	}
}

// checkInfo compares what is listed of each dataset with the part that it is read by.
func (r *Reader) checkInfo(t *testing.T) {
	t.Helper()
	for i := range r.Len() {
		p := r.Part(i)
		size, sizeErr := p.Size()
		want := ckptfmt.TensorInfo{Name: p.Name, DType: p.DType, Foreign: p.Foreign, Shape: p.Shape, Bytes: size}
		got, err := r.Info(i)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (sizeErr == nil) {
			t.Errorf("%s: part -, listed +:\n%s%v, %v", r.name, diff, sizeErr, err)
		}
	}
}

// checkForms compares what was listed of each dataset with what its own header says.
func (r *Reader) checkForms(t *testing.T) {
	t.Helper()
	for _, d := range r.datasets {
		if d.at == nowhere || d.err != nil {
			continue
		}
		x, err := r.detail(d)
		if err != nil {
			t.Fatalf("%s: %s: %v", r.name, d.path, err)
		}
		x.settle()
		if diff := cmp.Diff(d.form, x.form, cmp.AllowUnexported(form{}, datatype{})); diff != "" {
			t.Errorf("%s: %s: listed -, header +:\n%s", r.name, d.path, diff)
		}
	}
}

// FuzzHeadersAlike does the same with damaged files.
func FuzzHeadersAlike(f *testing.F) {
	for _, name := range []string{"alike.h5", "version2.h5"} {
		b, err := os.ReadFile("../../fixtures/hdf5/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5"); err == nil {
			r.checkForms(t)
		}
	})
}
