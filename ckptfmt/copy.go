package ckptfmt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/crc32c"
)

// CopyOptions are the choices of [Copy]. The zero value copies everything into
// one shard, which gives TensorFlow's single-shard bundles again byte for byte.
type CopyOptions struct {
	FS FS // nil means the operating system's
	// Keep says which tensors are copied, by their old names; nil means all.
	Keep func(name string) bool
	// Rename gives new names; nil keeps the old.
	Rename func(name string) string
	// Shards spreads the tensors over that many data files; 0 means 1.
	Shards int
	// V1 writes a V1 checkpoint, in one file.
	V1 bool
}

// Copy writes the checkpoint under from again under to, verifying every
// checksum on the way. It holds no more than a piece of a tensor at a time, or
// one tensor where that is of strings or one of the checkpoints is V1.
func Copy(ctx context.Context, from, to string, o *CopyOptions) (err error) {
	if o == nil {
		o = &CopyOptions{}
	}
	r, err := Open(from, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	parts, damaged, err := storedParts(r)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		if o.Keep == nil || o.Keep(d.Name) {
			return fmt.Errorf("copying checkpoint %s: %w", from, d.Err)
		}
	}
	if parts, err = o.choose(parts); err != nil {
		return fmt.Errorf("copying checkpoint %s: %w", from, err)
	}
	switch {
	case o.V1:
		return copyV1(ctx, parts, to, o)
	case o.Shards > 1:
		return copyShards(ctx, parts, to, o)
	}
	return copyShard(ctx, parts, to, o)
}

// choose drops and renames tensors.
func (o *CopyOptions) choose(parts []storedPart) ([]storedPart, error) {
	old := make(map[string]string) // new name to old
	kept := parts[:0]
	for _, p := range parts {
		if o.Keep != nil && !o.Keep(p.name) {
			continue
		}
		if o.Rename != nil {
			p.name = o.Rename(p.stored)
			if before, ok := old[p.name]; ok && before != p.stored {
				return nil, fmt.Errorf("%w: %q and %q would both be %q", ErrExists, before, p.stored, p.name)
			}
			old[p.name] = p.stored
		}
		kept = append(kept, p)
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%w: no tensor is left", ErrNotFound)
	}
	return kept, nil
}

func copyShard(ctx context.Context, parts []storedPart, to string, o *CopyOptions) (err error) {
	w, err := CreateBundle(to, &BundleWriterOptions{FS: o.FS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.copyTo(w); err != nil {
			return err
		}
	}
	return w.Finish()
}

// copyShards gives each shard about the same number of bytes, in order, and
// merges them.
func copyShards(ctx context.Context, parts []storedPart, to string, o *CopyOptions) (err error) {
	total := int64(0)
	for _, p := range parts {
		total += p.size
	}
	shards := min(o.Shards, len(parts))
	var prefixes []string
	defer func() {
		if err != nil {
			err = errors.Join(err, removeShards(o.FS, prefixes))
		}
	}()
	done := int64(0)
	for i := range shards {
		n := 0
		left := shards - i - 1 // shards that need a tensor too
		for n < len(parts)-left && (n == 0 || i == shards-1 || done < total/int64(shards)*int64(i+1)) {
			done += parts[n].size
			n++
		}
		prefix := filepath.Join(to+"_temp", fmt.Sprintf("part-%05d-of-%05d", i, shards))
		prefixes = append(prefixes, prefix)
		if err := copyShard(ctx, parts[:n], prefix, o); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return MergeBundles(ctx, prefixes, to, &MergeOptions{FS: o.FS, DeleteOldDirs: true})
}

// removeShards removes what a copy that failed has written: it may be what filled
// the disk. The directory stays if it holds anything else.
func removeShards(fsys FS, prefixes []string) error {
	fsys = atomicfile.OrOS(fsys)
	for _, p := range prefixes {
		for _, name := range []string{layout.IndexName(p), layout.DataName(p, 0, 1)} {
			if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if len(prefixes) > 0 {
		fsys.Remove(filepath.Dir(prefixes[0])) // unless somebody has put files there
	}
	return nil
}

func copyV1(ctx context.Context, parts []storedPart, to string, o *CopyOptions) (err error) {
	w, err := CreateV1(to, &V1WriterOptions{FS: o.FS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := p.load(&p)
		if err != nil {
			return err
		}
		if err := w.AddSlice(p.name, p.full, p.tensorSlice(), t); err != nil {
			return err
		}
	}
	return w.Finish()
}

// copyTo adds the part to a bundle, in pieces where its bytes may stay as they
// are.
func (p *storedPart) copyTo(w *BundleWriter) error {
	if p.bundle == nil || p.bundle.order == binary.BigEndian || hasStrings(p.entry.dtype) {
		t, err := p.load(p)
		if err != nil {
			return err
		}
		return w.AddSlice(p.name, p.full, p.tensorSlice(), t)
	}
	file, err := p.bundle.locate(p.stored, p.entry)
	if err != nil {
		return err
	}
	crc, err := w.addStream(p.name, p.full, p.tensorSlice(), p.entry, io.NewSectionReader(file, p.offset, p.size))
	if err == nil && crc32c.Mask(crc) != p.entry.crc {
		err = corruptTensor(file, p.stored, p.entry, fmt.Errorf("%w: stored %#08x, computed %#08x", ErrChecksum, p.entry.crc, crc32c.Mask(crc)))
	}
	return err
}
