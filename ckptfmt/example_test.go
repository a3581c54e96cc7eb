package ckptfmt_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// A checkpoint is written, made the current one, found and read.
func Example() {
	logdir, err := os.MkdirTemp("", "logdir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(logdir)
	if err := saveExample(logdir); err != nil {
		log.Fatal(err)
	}

	prefix, err := ckptdir.LatestCheckpoint(logdir, nil)
	if err != nil {
		log.Fatal(err)
	}
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for t, err := range r.Tensors() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Name, dtype.Name(t.DType), t.Shape, t.Bytes)
	}
	t, err := r.Lookup("weights")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ckptfmt.Values[float32](t))
	// Output:
	// global_step int64 [] 8
	// weights float32 [2 2] 16
	// [1 2 3 4] <nil>
}

func saveExample(logdir string) error {
	prefix := filepath.Join(logdir, "model.ckpt-900")
	weights, err := ckptfmt.FromValues([]int64{2, 2}, []float32{1, 2, 3, 4})
	if err != nil {
		return err
	}
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Add("weights", weights); err != nil {
		return err
	}
	if err := w.Add("global_step", ckptfmt.Scalar(int64(900))); err != nil {
		return err
	}
	if err := w.Finish(); err != nil {
		return err
	}
	return ckptdir.UpdateState(logdir, &tfpb.CheckpointState{ModelCheckpointPath: prefix}, nil)
}
