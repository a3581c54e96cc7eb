package rewrite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/retire"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// CopyFilesOptions are the choices of [CopyFiles].
type CopyFilesOptions struct {
	FS ckptfmt.FS // nil means the operating system's
	// Progress, if not nil, is called with the number of tensor bytes verified
	// since the last call.
	Progress func(n int)
}

// CopyFiles copies the data files and the index of a V2 checkpoint byte for byte,
// including shards, byte order, alignment and the compression of the index. Everything
// is verified first, as by [ckptfmt.BundleReader.Verify], and the first damage is
// returned. The copy is published when all of it is durable, its index last. o may be
// nil.
func CopyFiles(ctx context.Context, from, to string, o *CopyFilesOptions) error {
	if o == nil {
		o = &CopyFilesOptions{}
	}
	err := copyFiles(ctx, from, to, o)
	if err != nil {
		return fmt.Errorf("copying checkpoint %s to %s: %w", from, to, err)
	}
	return nil
}

func copyFiles(ctx context.Context, from, to string, o *CopyFilesOptions) (err error) {
	r, err := ckptfmt.OpenBundle(from, &ckptfmt.ReaderOptions{FS: o.FS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := verifyAll(ctx, r, o.Progress); err != nil {
		return err
	}
	fsys := atomicfile.OrOS(o.FS)
	if err := atomicfile.MkdirSync(fsys, filepath.Dir(to)); err != nil {
		return err
	}
	var suffixes []string
	for i := range r.NumShards() {
		suffixes = append(suffixes, layout.DataName("", i, r.NumShards()))
	}
	var files []*atomicfile.Pending
	defer func() {
		for _, p := range files {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, suffix := range append(suffixes, layout.IndexSuffix) {
		p, err := copyDurably(ctx, fsys, from+suffix, to+suffix)
		if err != nil {
			return err
		}
		files = append(files, p)
	}
	return publishCopies(fsys, to, files)
}

// publishCopies gives durable files their names, the index, which is the last of
// them, after the others.
func publishCopies(fsys ckptfmt.FS, to string, files []*atomicfile.Pending) error {
	if err := retire.Checkpoint(fsys, to); err != nil {
		return err
	}
	last := len(files) - 1
	for _, p := range files[:last] {
		if err := p.Rename(); err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return files[last].Commit()
}

// verifyAll returns the first damage.
func verifyAll(ctx context.Context, r *ckptfmt.BundleReader, progress func(n int)) error {
	for name, err := range r.Verify(ctx) {
		if err != nil {
			return err
		}
		if info, err := r.Info(name); err == nil && progress != nil {
			progress(int(info.Bytes))
		}
	}
	return nil
}

// copyDurably copies a file; the copy is durable and not yet published.
func copyDurably(ctx context.Context, fsys ckptfmt.FS, from, to string) (*atomicfile.Pending, error) {
	in, err := atomicfile.Open(fsys, from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p, err := atomicfile.Create(fsys, to, layout.TempName(to))
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(p, &watchedReader{ReadCloser: in, err: ctx.Err}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := p.Sync(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}
