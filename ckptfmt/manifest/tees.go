package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Tees take the SHA-256 of files for a record while something else reads them, as a look for damage
// does: a large file is then read once. The zero value is ready; it is for one goroutine.
type Tees struct {
	files map[string]*tee
}

// tee is a file that is being read. Its sum follows the reads from the beginning of the file to its end.
type tee struct {
	f       *os.File
	info    fs.FileInfo // before the first read
	changed time.Time   // see RecordFile
	sum     hash.Hash
	next    int64 // up to which the sum is taken
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
	if t.files == nil {
		t.files = map[string]*tee{}
	}
	t.files[name] = &tee{f: f, info: info, changed: stampOf(info), sum: sha256.New()}
	return t.files[name]
}

// Leave notes a file below the root whose sum is not taken: something else vouches for it. Describe leaves that
// out, unless the file was changed since. It reports whether the file is there.
func (t *Tees) Leave(root *os.Root, name string) bool {
	info, err := root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return false
	}
	if t.files == nil {
		t.files = map[string]*tee{}
	}
	t.files[name] = &tee{info: info, changed: stampOf(info)}
	return true
}

// ReadAt implements [io.ReaderAt].
func (t *tee) ReadAt(p []byte, at int64) (n int, err error) {
	n, err = t.f.ReadAt(p, at)
	if gap := at - t.next; gap > 0 && gap <= mostGap {
		t.fill(gap)
	}
	if done := t.next - at; done >= 0 && done < int64(n) {
		t.sum.Write(p[done:n])
		t.next = at + int64(n)
	}
	return n, err
}

// fill takes what was not read.
func (t *tee) fill(gap int64) {
	between := make([]byte, gap)
	if n, err := t.f.ReadAt(between, t.next); n == len(between) && (err == nil || err == io.EOF) {
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
	if _, err := f.Seek(t.next, io.SeekStart); err != nil {
		return 0, err
	}
	rest, err := hashInto(ctx, t.sum, f)
	return t.next + rest, err
}
