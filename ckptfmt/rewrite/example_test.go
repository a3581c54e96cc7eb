package rewrite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
)

// A program writes its tensors as safetensors, and as a checkpoint that
// tf.train.Checkpoint restores, and reads the first file again.
func ExampleFromTensors() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "model.safetensors")
	if err := saveModel(name, filepath.Join(dir, "model.ckpt-900")); err != nil {
		log.Fatal(err)
	}

	f, err := formats.Find(name)
	if err != nil {
		log.Fatal(err)
	}
	r, err := f.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for t, err := range r.Tensors() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Name, dtype.Name(t.DType), t.Shape)
	}
	kernel, err := r.Lookup("dense/kernel")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ckptfmt.Values[float32](kernel))
	fmt.Println(r.Metadata["framework"])
	// Output:
	// dense/bias float32 [2]
	// dense/kernel float32 [2 2]
	// [1 2 3 4] <nil>
	// none
}

// saveModel writes a model to a file of the format that its extension names, and to a
// checkpoint with a graph of objects.
func saveModel(name, prefix string) error {
	ctx := context.Background()
	kernel, err := ckptfmt.FromValues([]int64{2, 2}, []float32{1, 2, 3, 4})
	if err != nil {
		return err
	}
	bias, err := ckptfmt.FromValues([]int64{2}, []float32{0, 0.5})
	if err != nil {
		return err
	}
	s, err := rewrite.FromTensors([]ckptfmt.NamedTensor{{Name: "dense/kernel", Tensor: kernel}, {Name: "dense/bias", Tensor: bias}})
	if err != nil {
		return err
	}
	s.SetMetadata(map[string]string{"framework": "none"})
	if err := rewrite.Write(ctx, s, name, nil); err != nil {
		return err
	}
	if err := s.AddObjects(); err != nil {
		return err
	}
	return rewrite.Write(ctx, s, prefix, nil)
}
