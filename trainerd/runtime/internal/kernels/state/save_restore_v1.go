package state

import (
	"errors"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// The ops of savers that write TensorFlow's first checkpoint format.
var saveRestoreV1Ops = exec.OpTable{
	"Save":         {Flags: exec.Stateful, Build: exec.WithoutAttrs(saveV1)},
	"SaveSlices":   {Flags: exec.Stateful, Build: exec.WithoutAttrs(saveSlicesV1)},
	"Restore":      {Flags: exec.Stateful, Build: buildRestoreV1},
	"RestoreSlice": {Flags: exec.Stateful, Build: buildRestoreV1},
}

func saveV1(c *exec.KernelContext) error { return saveFile(c, 2, func(int) string { return "" }) }

func saveSlicesV1(c *exec.KernelContext) error {
	if c.In(2).NumElements() != c.NumInputs()-3 {
		return c.Invalid("%d slices for %d tensors", c.In(2).NumElements(), c.NumInputs()-3)
	}
	return saveFile(c, 3, func(i int) string { return string(c.In(2).Strings[i]) })
}

// saveFile writes the inputs from first on to a file. spec says which slice of
// what each is.
func saveFile(c *exec.KernelContext, first int, spec func(i int) string) error {
	name, err := c.OneString(0, "the file name")
	if err != nil {
		return err
	}
	names, n := c.In(1), c.NumInputs()-first
	if names.NumElements() != n {
		return c.Invalid("%d names for %d tensors", names.NumElements(), n)
	}
	path, err := c.CheckpointPath(name)
	if err != nil {
		return err
	}
	w, err := ckptfmt.CreateV1(path, nil)
	if err != nil {
		return c.FileError(err)
	}
	defer w.Close()
	for i := range n {
		if err := saveOne(c, w, string(names.Strings[i]), spec(i), c.In(first+i)); err != nil {
			return err
		}
	}
	if err := w.Finish(); err != nil {
		return c.FileError(err)
	}
	return nil
}

func buildRestoreV1(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dt")
	return func(c *exec.KernelContext) error {
		pattern, err := c.OneString(0, "the file pattern")
		if err != nil {
			return err
		}
		name, err := c.OneString(1, "the tensor's name")
		if err != nil {
			return err
		}
		spec := ""
		if c.NumInputs() > 2 {
			if spec, err = c.OneString(2, "the slice"); err != nil {
				return err
			}
		}
		path, err := c.CheckpointPath(pattern)
		if err != nil {
			return err
		}
		t, err := restoreFile(path, name, spec)
		if err != nil {
			return c.FileError(err)
		}
		if t.DType != dt {
			return c.Invalid("%q is %s in the checkpoint, not %s", name, exec.TypeName(t.DType), exec.TypeName(dt))
		}
		v := exec.ImportTensor(t)
		c.Alias(0, v, v.Shape)
		return nil
	}, nil
}

// restoreFile reads a tensor from a checkpoint of the first format; or of the
// second, which TensorFlow's op falls back to as well.
func restoreFile(pattern, name, spec string) (*ckptfmt.Tensor, error) {
	r, err := ckptfmt.OpenV1(pattern)
	if err == nil {
		defer r.Close()
		return restoreOne(r, name, spec)
	}
	b, second := ckptfmt.OpenBundle(pattern, nil)
	if second != nil {
		return nil, errors.Join(err, second)
	}
	defer b.Close()
	return restoreOne(b, name, spec)
}

// tensorWriter writes a checkpoint, tensorReader reads one, of either format.
type tensorWriter interface {
	Add(name string, t *ckptfmt.Tensor) error
	AddSlice(name string, full []int64, s ckptfmt.TensorSlice, t *ckptfmt.Tensor) error
}

type tensorReader interface {
	Lookup(name string) (*ckptfmt.Tensor, error)
	LookupSlice(name string, s ckptfmt.TensorSlice) (*ckptfmt.Tensor, error)
}
