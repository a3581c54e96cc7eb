package ckptfmt

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// maxOpenShards bounds the data files that a reader has open at a time. A
// checkpoint may have more than a process may have open.
const maxOpenShards = 256

// shard is a data file. It is opened when it is read, and may be closed when it
// is not. If another file has its name by then, the checksums tell.
type shard struct {
	r    *BundleReader
	name string
	size int64 // when it was first opened

	file  atomicfile.ReadFile // nil when it is closed; guarded by r.mu
	users int                 // likewise: what reads at the moment

	mapOnce sync.Once
	mapped  []byte // by View
	mapErr  error
}

// shard returns a data file, which is there.
func (r *BundleReader) shard(i int) (*shard, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.shards[i]; s != nil {
		return s, nil
	}
	s := &shard{r: r, name: layout.DataName(r.prefix, i, r.NumShards())}
	err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lostShard(s.name, r.NumShards())
	}
	if err != nil {
		return nil, err
	}
	info, err := s.file.Stat()
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.size = info.Size()
	r.shards[i] = s
	return s, nil
}

// open opens the file, and closes one that nobody reads if there are many. The
// caller holds r.mu.
func (s *shard) open() error {
	if s.r.closed {
		return &os.PathError{Op: "open", Path: s.name, Err: os.ErrClosed}
	}
	if s.r.open >= maxOpenShards {
		for _, other := range s.r.shards {
			if other.file != nil && other.users == 0 {
				other.close() // it was only read
				break
			}
		}
	}
	f, err := atomicfile.Open(s.r.opts.FS, s.name)
	if err != nil {
		return err
	}
	s.file = f
	s.r.open++
	return nil
}

func (s *shard) close() error {
	err := s.file.Close()
	s.file = nil
	s.r.open--
	return err
}

// use calls f with the open file.
func (s *shard) use(f func(atomicfile.ReadFile) error) error {
	s.r.mu.Lock()
	if s.file == nil {
		if err := s.open(); err != nil {
			s.r.mu.Unlock()
			return err
		}
	}
	file := s.file
	s.users++
	s.r.mu.Unlock()
	defer func() {
		s.r.mu.Lock()
		s.users--
		s.r.mu.Unlock()
	}()
	return f(file)
}

// ReadAt implements [io.ReaderAt].
func (s *shard) ReadAt(b []byte, offset int64) (n int, err error) {
	err = s.use(func(f atomicfile.ReadFile) error {
		n, err = f.ReadAt(b, offset)
		return err
	})
	return n, err
}

// view maps the file, which is not empty, on first use.
func (s *shard) view() ([]byte, error) {
	s.mapOnce.Do(func() {
		s.mapErr = s.use(func(f atomicfile.ReadFile) (err error) {
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
		if s.file != nil {
			err = errors.Join(err, s.close())
		}
	}
	clear(r.shards)
	return err
}
