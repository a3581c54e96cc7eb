package ckptfmt

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// shard is a data file. It is opened when it is first read. If another file has its name by then,
// the checksums show that.
type shard struct {
	*openfile.File
	size int64 // when it was opened

	mapOnce sync.Once
	mapped  []byte // by View
	mapErr  error
}

// shard returns a data file, which must exist.
func (r *BundleReader) shard(i int) (*shard, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.shards[i]; s != nil {
		return s, nil
	}
	name := layout.DataName(r.prefix, i, r.NumShards())
	if r.closed {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrClosed}
	}
	f, err := openfile.Shared(r.opts.FS, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lostShard(name, r.NumShards())
	}
	if err != nil {
		return nil, err
	}
	s := &shard{File: f, size: f.Size()}
	r.shards[i] = s
	return s, nil
}

// view maps the file, which is not empty, on first use.
func (s *shard) view() ([]byte, error) {
	s.mapOnce.Do(func() {
		s.mapErr = s.Use(func(f atomicfile.ReadFile) (err error) {
			file, ok := f.(*os.File)
			if !ok {
				return errNoMmap
			}
			s.mapped, err = mapFile(file, s.size)
			return err
		})
	})
	return s.mapped, s.mapErr
}

// Close closes the checkpoint's files. Tensors returned by [BundleReader.View]
// must not be used after that.
func (r *BundleReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	err := r.index.Close()
	for _, s := range r.shards {
		if s.mapped != nil {
			err = errors.Join(err, unmapFile(s.mapped))
		}
		err = errors.Join(err, s.Close())
	}
	clear(r.shards)
	return err
}
