package state

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var saveRestoreOps = exec.OpTable{
	"SaveV2":             {Flags: exec.Stateful, Build: buildSaveV2},
	"RestoreV2":          {Flags: exec.Stateful, Build: buildRestoreV2},
	"MergeV2Checkpoints": {Flags: exec.Stateful, Build: buildMergeV2},
	"ShardedFilename":    {Build: exec.WithoutAttrs(shardedFilename)},
	"ShardedFilespec":    {Build: exec.WithoutAttrs(shardedFilespec)},
}

// checkpointArgs returns the prefix, and checks that there is a name and a
// slice for each tensor.
func checkpointArgs(c *exec.KernelContext, tensors int) (string, error) {
	prefix, err := c.OneString(0, "the prefix")
	if err != nil {
		return "", err
	}
	names, slices := c.In(1), c.In(2)
	if len(names.Shape) != 1 || len(slices.Shape) != 1 || len(names.Strings) != tensors || len(slices.Strings) != tensors {
		return "", c.Invalid("%d names and %d slices for %d tensors", len(names.Strings), len(slices.Strings), tensors)
	}
	return c.CheckpointPath(prefix)
}

func buildSaveV2(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) (err error) {
		n := c.NumInputs() - 3
		prefix, err := checkpointArgs(c, n)
		if err != nil {
			return err
		}
		w, err := ckptfmt.CreateBundle(prefix, nil)
		if err != nil {
			return c.FileError(err)
		}
		defer w.Close()
		for i := range n {
			if err := saveOne(c, w, string(c.In(1).Strings[i]), string(c.In(2).Strings[i]), c.In(3+i)); err != nil {
				return err
			}
		}
		if err := w.Finish(); err != nil {
			return c.FileError(err)
		}
		return nil
	}, nil
}

func saveOne(c *exec.KernelContext, w tensorWriter, name, spec string, t *exec.Tensor) error {
	if t.DType != exec.String && exec.ElemSize(t.DType) == 0 {
		return c.Invalid("%q is %s, which checkpoints do not hold", name, t.Describe())
	}
	if spec == "" {
		if err := w.Add(name, t.Export()); err != nil {
			return c.FileError(err)
		}
		return nil
	}
	full, s, _, err := ckptfmt.ParseShapeAndSlice(spec)
	if err != nil {
		return c.Invalid("%q: %v", name, err)
	}
	if err := w.AddSlice(name, full, s, t.Export()); err != nil {
		return c.FileError(err)
	}
	return nil
}

func buildRestoreV2(b *exec.OpConstruction) (exec.Kernel, error) {
	dtypes := b.Types("dtypes")
	return func(c *exec.KernelContext) error {
		prefix, err := checkpointArgs(c, len(dtypes))
		if err != nil {
			return err
		}
		r, err := ckptfmt.OpenBundle(prefix, nil)
		if err != nil {
			return c.FileError(err)
		}
		defer r.Close()
		for i, dt := range dtypes {
			name := string(c.In(1).Strings[i])
			t, err := restoreOne(r, name, string(c.In(2).Strings[i]))
			if err != nil {
				return c.FileError(err)
			}
			if t.DType != dt {
				return c.Invalid("%q is %s in the checkpoint, not %s", name, exec.TypeName(t.DType), exec.TypeName(dt))
			}
			v := exec.ImportTensor(t)
			c.Alias(i, v, v.Shape)
		}
		return nil
	}, nil
}

func restoreOne(r tensorReader, name, spec string) (*ckptfmt.Tensor, error) {
	if spec == "" {
		return r.Lookup(name)
	}
	_, s, _, err := ckptfmt.ParseShapeAndSlice(spec)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return r.LookupSlice(name, s)
}

func buildMergeV2(b *exec.OpConstruction) (exec.Kernel, error) {
	o := &ckptfmt.MergeOptions{AllowMissing: b.Bool("allow_missing_files"), DeleteOldDirs: b.Bool("delete_old_dirs")}
	return func(c *exec.KernelContext) error {
		dst, err := c.OneString(1, "the destination")
		if err != nil {
			return err
		}
		var prefixes []string
		for _, p := range c.In(0).Strings {
			prefix, err := c.CheckpointPath(string(p))
			if err != nil {
				return err
			}
			prefixes = append(prefixes, prefix)
		}
		if dst, err = c.CheckpointPath(dst); err != nil {
			return err
		}
		if err := ckptfmt.MergeBundles(c.Context(), prefixes, dst, o); err != nil {
			return c.FileError(err)
		}
		return nil
	}, nil
}

func shardedFilename(c *exec.KernelContext) error {
	base, err := c.StringScalar(0, "the basename")
	if err != nil {
		return err
	}
	shard, err := c.IntScalar(1, "the shard")
	if err != nil {
		return err
	}
	n, err := c.IntScalar(2, "the number of shards")
	if err != nil {
		return err
	}
	c.Out(0, exec.String).Strings[0] = fmt.Appendf(nil, "%s-%05d-of-%05d", base, shard, n)
	return nil
}

func shardedFilespec(c *exec.KernelContext) error {
	base, err := c.StringScalar(0, "the basename")
	if err != nil {
		return err
	}
	n, err := c.IntScalar(1, "the number of shards")
	if err != nil {
		return err
	}
	c.Out(0, exec.String).Strings[0] = fmt.Appendf(nil, "%s-?????-of-%05d", base, n)
	return nil
}
