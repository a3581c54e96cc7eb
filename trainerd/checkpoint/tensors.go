package checkpoint

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/logging"
)

// tensorWriter is a checkpoint of either version that is being written.
type tensorWriter interface {
	Add(name string, t *ckptfmt.Tensor) error
	AddSlice(name string, fullShape []int64, s ckptfmt.TensorSlice, t *ckptfmt.Tensor) error
	Finish() error
	Close() error
}

// writeTensors reports whether there was anything to write.
func (s *Saver) writeTensors(ctx context.Context, cut *Snapshot, prefix string) (bool, error) {
	if cut.tensors == nil {
		return true, s.saveByOps(ctx, cut, prefix)
	}
	if len(cut.tensors) == 0 {
		return false, nil
	}
	parts := s.split(cut)
	switch {
	case s.format() == FormatV1:
		return true, s.writeV1(ctx, cut, prefix, parts)
	case len(parts) > 1:
		return true, s.writeShards(ctx, cut, prefix, parts)
	}
	w, err := ckptfmt.CreateBundle(prefix, s.bundleOptions(cut, prefix))
	if err != nil {
		return false, err
	}
	return true, writeAll(ctx, w, cut, cut.tensors, func() error {
		cut.Close() // the last tensor is written; steps need not copy it while the disk is synced
		return s.keepPrevious(prefix)
	})
}

// bundleOptions leaves all processors but one to a training that continues.
func (s *Saver) bundleOptions(cut *Snapshot, prefix string) *ckptfmt.BundleWriterOptions {
	return &ckptfmt.BundleWriterOptions{FS: s.fs(cut, prefix), Sequential: cut.lazy != nil}
}

// writeAll writes tensors and publishes them, with something to do in between.
func writeAll(ctx context.Context, w tensorWriter, cut *Snapshot, tensors []snapshotTensor, before func() error) error {
	defer w.Close()
	for i := range tensors {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := tensors[i].addTo(w, cut.lazy); err != nil {
			return err
		}
	}
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	return w.Finish()
}

// split divides the tensors of a cut into shards of about the same size.
func (s *Saver) split(cut *Snapshot) [][]snapshotTensor {
	n := s.shards(cut)
	total := int64(0)
	for i := range cut.tensors {
		total += cut.tensors[i].bytes()
	}
	var parts [][]snapshotTensor
	first, done := 0, int64(0)
	for i := range cut.tensors {
		done += cut.tensors[i].bytes()
		left := len(cut.tensors) - i - 1
		full := done*int64(n) >= total*int64(len(parts)+1)
		if len(parts) < n-1 && (full || left < n-len(parts)) {
			parts = append(parts, cut.tensors[first:i+1])
			first = i + 1
		}
	}
	return append(parts, cut.tensors[first:])
}

// writeShards writes a bundle for each part and merges them into one, which moves the files. The
// next run removes what a crash leaves of the parts; after an error they are removed at once,
// because the disk may be full.
func (s *Saver) writeShards(ctx context.Context, cut *Snapshot, prefix string, parts [][]snapshotTensor) error {
	dir := prefix + "_temp"
	err := s.writeParts(ctx, cut, prefix, dir, parts)
	if err == nil {
		return nil
	}
	if left := ckptdir.RemoveParts(dir, &ckptfmt.FileOptions{FS: s.FS}); left != nil {
		logging.OrDiscard(s.Logger).Warn("part of a checkpoint could not be deleted", "checkpoint", prefix, "err", left)
	}
	return err
}

func (s *Saver) writeParts(ctx context.Context, cut *Snapshot, prefix, dir string, parts [][]snapshotTensor) error {
	var prefixes []string
	for i, part := range parts {
		name := filepath.Join(dir, fmt.Sprintf("part-%05d-of-%05d", i, len(parts)))
		w, err := ckptfmt.CreateBundle(name, s.bundleOptions(cut, prefix))
		if err == nil {
			err = writeAll(ctx, w, cut, part, nil)
		}
		if err != nil {
			return err
		}
		prefixes = append(prefixes, name)
	}
	if err := s.keepPrevious(prefix); err != nil {
		return err
	}
	return ckptfmt.MergeBundles(ctx, prefixes, prefix, &ckptfmt.MergeOptions{FS: s.fs(cut, prefix), DeleteOldDirs: true})
}

func (s *Saver) writeV1(ctx context.Context, cut *Snapshot, prefix string, parts [][]snapshotTensor) error {
	if len(parts) > 1 {
		if err := s.keepPreviousShards(prefix, len(parts)); err != nil {
			return err
		}
	}
	for i, part := range slices.Backward(parts) {
		name := prefix
		if len(parts) > 1 {
			name = layout.V1ShardName(prefix, i, len(parts))
		}
		w, err := ckptfmt.CreateV1(name, &ckptfmt.V1WriterOptions{FS: s.fs(cut, prefix)})
		if err == nil {
			err = writeAll(ctx, w, cut, part, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
