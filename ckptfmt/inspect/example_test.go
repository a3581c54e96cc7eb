package inspect_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

// Two checkpoints differ in one of their tensors.
func ExampleDiff() {
	dir, err := os.MkdirTemp("", "logdir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	a, err := saved(filepath.Join(dir, "a"), []float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := saved(filepath.Join(dir, "b"), []float32{1, 2, 5})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	for d, err := range inspect.Diff(context.Background(), a, b, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d elements differ, by up to %v at %d\n", d.Name, d.Elements, d.MaxAbs, d.MaxAt)
	}
	// Output:
	// weights: 1 elements differ, by up to 2 at 2
}

// saved writes a checkpoint, and opens it.
func saved(prefix string, weights []float32) (ckptfmt.Reader, error) {
	t, err := ckptfmt.FromValues([]int64{int64(len(weights))}, weights)
	if err != nil {
		return nil, err
	}
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := w.Add("weights", t); err != nil {
		return nil, err
	}
	if err := w.Add("global_step", ckptfmt.Scalar(int64(900))); err != nil {
		return nil, err
	}
	if err := w.Finish(); err != nil {
		return nil, err
	}
	return ckptfmt.Open(prefix, nil)
}
