package rewrite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// Options are the choices of [Write]. The zero value writes one shard.
type Options struct {
	FS ckptfmt.FS // nil means the operating system's
	// Shards distributes the tensors of a checkpoint over that many data
	// files; 0 means 1.
	Shards int
	// V1 writes a V1 checkpoint, in one file.
	V1 bool
	// MaxShardSize, unless it is 0, is the largest number of element bytes in a
	// safetensors file, or in a Keras file next to a .weights.json: if all tensors
	// together have more, there are several files and an index.
	MaxShardSize int64
	// Like names a Keras file that says where in the new Keras file each
	// tensor goes; "" means the source itself, if that is a Keras file.
	Like string
	// Progress, if not nil, is called with the number of bytes read since the last
	// call.
	Progress func(n int)
}

// Write writes a source to a checkpoint or to a file of another format,
// according to the name's extension. It is published when it is complete and
// durable.
func Write(ctx context.Context, s *Source, to string, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	err := s.firstDamage()
	if err == nil {
		err = write(ctx, s, to, o)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", to, err)
	}
	return nil
}

func write(ctx context.Context, s *Source, to string, o *Options) error {
	parts, f := watched(ctx, s.written(), o.Progress), FormatOf(to)
	if f != Checkpoint {
		return s.writeFormat(ctx, f, to, whole(parts), o)
	}
	if err := refused(parts, checkOf(f, o.V1)); err != nil {
		return err
	}
	switch {
	case o.V1:
		return writeV1(ctx, parts, to, o)
	case o.Shards > 1:
		return writeShards(ctx, parts, to, o)
	}
	return writeShard(ctx, parts, to, o)
}

// watched returns parts whose readers fail when ctx ends, even within a tensor, and report what
// they read to progress, which may be nil.
func watched(ctx context.Context, parts []ckptfmt.Part, progress func(n int)) []ckptfmt.Part {
	out := slices.Clone(parts)
	for i := range out {
		open := out[i].Open // not the part: there may be very many
		if open == nil {
			continue
		}
		out[i].Open = func() (io.ReadCloser, error) {
			r, err := open()
			if err != nil {
				return nil, err
			}
			return &watchedReader{r, ctx.Err, progress}, nil
		}
	}
	return out
}

type watchedReader struct {
	io.ReadCloser
	err      func() error
	progress func(n int)
}

func (w *watchedReader) Read(b []byte) (int, error) {
	if err := w.err(); err != nil {
		return 0, err
	}
	n, err := w.ReadCloser.Read(b[:min(len(b), copySize)])
	if w.progress != nil {
		w.progress(n)
	}
	return n, err
}

// copySize is how much is read at once: little enough to stay in the processor's cache
// until it is written, after its checksum was taken there, and much for a system call.
const copySize = 256 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// WriteTo implements [io.WriterTo] for what io.Copy would copy in pieces of 32 KiB.
func (w *watchedReader) WriteTo(to io.Writer) (int64, error) {
	buf := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(to, struct{ io.Reader }{w}, buf[:])
}

func writeShard(ctx context.Context, parts []ckptfmt.Part, to string, o *Options) (err error) {
	w, err := ckptfmt.CreateBundle(to, &ckptfmt.BundleWriterOptions{FS: o.FS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.AddPart(p); err != nil {
			return err
		}
	}
	return w.Finish()
}

// writeShards gives each shard about the same number of bytes, in order, and
// merges them.
func writeShards(ctx context.Context, parts []ckptfmt.Part, to string, o *Options) (err error) {
	groups, err := split(parts, o.Shards)
	if err != nil {
		return err
	}
	dir := to + "_temp"
	var prefixes []string
	defer func() {
		if err != nil {
			err = errors.Join(err, removeShards(o.FS, dir, prefixes))
		}
	}()
	for i, group := range groups {
		prefix := filepath.Join(dir, fmt.Sprintf("part-%05d-of-%05d", i, len(groups)))
		prefixes = append(prefixes, prefix)
		if err := writeShard(ctx, group, prefix, o); err != nil {
			return err
		}
	}
	return ckptfmt.MergeBundles(ctx, prefixes, to, &ckptfmt.MergeOptions{FS: o.FS, DeleteOldDirs: true})
}

// removeShards removes what a failed write leaves.
func removeShards(fsys ckptfmt.FS, dir string, prefixes []string) error {
	fsys = atomicfile.OrOS(fsys)
	var failed error
	for _, p := range prefixes {
		for _, name := range []string{layout.IndexName(p), layout.DataName(p, 0, 1)} {
			failed = errors.Join(failed, atomicfile.RemoveIfExists(fsys, name))
		}
	}
	_ = fsys.Remove(dir) // refused when anything else is in it
	return failed
}

// split cuts a list into at most n groups of about the same size, none empty.
func split(parts []ckptfmt.Part, n int) ([][]ckptfmt.Part, error) {
	sizes := make([]int64, len(parts))
	total := int64(0)
	for i, p := range parts {
		size, err := p.Size()
		if err != nil {
			return nil, err
		}
		sizes[i] = size
		total += size
	}
	n = min(n, len(parts))
	var groups [][]ckptfmt.Part
	at, done := 0, int64(0)
	for i := range n {
		begin, left := at, n-i-1 // groups that need a part too
		for at < len(parts)-left && (at == begin || i == n-1 || done < total/int64(n)*int64(i+1)) {
			done += sizes[at]
			at++
		}
		groups = append(groups, parts[begin:at])
	}
	return groups, nil
}

func writeV1(ctx context.Context, parts []ckptfmt.Part, to string, o *Options) (err error) {
	w, err := ckptfmt.CreateV1(to, &ckptfmt.V1WriterOptions{FS: o.FS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := p.Load()
		if err != nil {
			return err
		}
		if err := w.AddSlice(p.Name, p.Full, p.Slice, t); err != nil {
			return err
		}
	}
	return w.Finish()
}

// whole joins the slices of partitioned tensors. It returns parts itself if there are none, so the
// caller must not change the result.
func whole(parts []ckptfmt.Part) []ckptfmt.Part {
	slicesOf := make(map[string][]ckptfmt.Part)
	for i := range parts {
		if p := &parts[i]; !p.IsWhole() {
			slicesOf[p.Name] = append(slicesOf[p.Name], *p)
		}
	}
	if len(slicesOf) == 0 {
		return parts
	}
	var out []ckptfmt.Part
	for _, p := range parts {
		list, cut := slicesOf[p.Name]
		switch {
		case !cut:
			out = append(out, p)
		case list != nil:
			out = append(out, ckptfmt.JoinParts(list))
			slicesOf[p.Name] = nil // once
		}
	}
	return out
}
