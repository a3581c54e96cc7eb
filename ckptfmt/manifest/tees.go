package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Tees take the SHA-256 of files for a record while something else reads them, as a look for damage
// does: a large file is then read once. The zero value is ready. It is for one goroutine, its readers
// are for any number: package hdf5 reads large groups with several.
type Tees struct {
	files map[string]*tee
}

// tee is a file that is being read. Its sum follows the reads from the beginning of the file to its end.
type tee struct {
	f       *os.File
	info    fs.FileInfo // before the first read
	changed time.Time   // see RecordFile

	mu   sync.Mutex
	sum  hash.Hash // nil if it is not taken
	next int64     // up to which the sum is taken
}

// mostGap is what may lie between two reads that are of one row, as the names in an archive do.
const mostGap = 256 << 10

// Reader returns a reader of a file below the root whose reads are noted. The file may be closed
// once all of it was read.
func (t *Tees) Reader(name string, f *os.File) io.ReaderAt {
	info, err := f.Stat()
	if err != nil {
		return f
	}
	b := &tee{f: f, info: info, changed: stampOf(info), sum: sha256.New()}
	t.note(name, b)
	return b
}

// Leave registers a file below the root whose sum is not computed, because something else vouches
// for its content. Describe gives it none, unless the file has changed since.
func (t *Tees) Leave(root *os.Root, name string) {
	if info, err := root.Lstat(filepath.FromSlash(name)); err == nil {
		t.note(name, &tee{info: info, changed: stampOf(info)})
	}
}

func (t *Tees) note(name string, b *tee) {
	if t.files == nil {
		t.files = map[string]*tee{}
	}
	t.files[name] = b
}

// ReadAt implements [io.ReaderAt].
func (t *tee) ReadAt(p []byte, at int64) (n int, err error) {
	n, err = t.f.ReadAt(p, at)
	t.mu.Lock()
	defer t.mu.Unlock()
	if gap := at - t.next; gap > 0 && gap <= mostGap {
		t.fill(gap)
	}
	if done := t.next - at; done >= 0 && done < int64(n) {
		t.sum.Write(p[done:n])
		t.next = at + int64(n)
	}
	return n, err
}

// fill reads the bytes that were skipped.
func (t *tee) fill(gap int64) {
	between := make([]byte, gap)
	if _, err := t.f.ReadAt(between, t.next); err == nil { // else the file ends before
		t.sum.Write(between)
		t.next += gap
	}
}

// Describe is the function Describe. It reads only what was not read before.
func (t *Tees) Describe(ctx context.Context, root *os.Root, names []string) (files []RecordFile, err error) {
	for _, name := range names {
		info, err := root.Lstat(filepath.FromSlash(name))
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		described := RecordFile{Name: name, Modified: info.ModTime().UTC(), Changed: stampOf(info)}
		before := t.files[name]
		if before == nil || !isUnchanged(before.info, info) {
			before = &tee{sum: sha256.New(), changed: described.Changed}
		}
		described.Changed = before.changed
		if before.sum == nil {
			described.Bytes = info.Size()
			files = append(files, described)
			continue
		}
		if described.Bytes, err = before.finish(ctx, root, name); err != nil {
			return nil, err
		}
		described.SHA256 = hex.EncodeToString(before.sum.Sum(nil))
		files = append(files, described)
	}
	return files, nil
}

// isUnchanged reports whether a file is as it was.
func isUnchanged(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime()) && changedAt(before).Equal(changedAt(now))
}

// finish takes the rest of the file, and returns its size.
func (t *tee) finish(ctx context.Context, root *os.Root, name string) (size int64, err error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	rest, err := hashInto(ctx, t.sum, io.NewSectionReader(f, t.next, math.MaxInt64))
	return t.next + rest, err
}
