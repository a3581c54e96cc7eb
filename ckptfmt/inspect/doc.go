// Package inspect examines the tensors of checkpoints: how two checkpoints
// differ, the statistics of a tensor, the objects that tf.train.Checkpoint saved,
// and which tensors are optimizer slots.
//
//	for d, err := range inspect.Diff(ctx, a, b, nil) {
//		if err != nil { ... }
//		fmt.Println(d.Name, d.Elements, d.MaxAbs)
//	}
//
// It reads through [ckptfmt.Reader], tensors of numbers a piece at a time. The
// package has no state and starts no goroutines.
package inspect
