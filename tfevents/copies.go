package tfevents

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
)

const (
	// headSize has room for some events.
	headSize = 512
	// leastHead has room for the version at the beginning of a file, whose time distinguishes it
	// from other files.
	leastHead = 64
)

// skipCopied makes the reading of a new file begin after the part that it shares with an earlier
// one, if either is a copy of the other: people leave backups next to events files, or compress
// them. Otherwise each would count as a separate writer that repeats all points of the other.
func (x *RunData) skipCopied(i int, file fs.File) {
	f := &x.files[i]
	f.head = headOf(x.fsys, f.name, file)
	for j := range x.files[:i] {
		other := &x.files[j]
		n := min(len(f.head), len(other.head))
		if n < leastHead || other.failed || !bytes.Equal(f.head[:n], other.head[:n]) || other.next < max(leastHead, f.next) {
			continue
		}
		if n, same := inCommon(x.fsys, f.name, other.name, other.next); same {
			f.next, f.begin = n, n
		}
	}
}

// headOf returns the beginning of an open file, without changing its position.
func headOf(fsys fs.FS, name string, file fs.File) []byte {
	head := make([]byte, headSize)
	if at, ok := file.(io.ReaderAt); ok {
		n, _ := at.ReadAt(head, 0)
		return head[:n]
	}
	again, err := fsys.Open(name)
	if err != nil {
		return nil
	}
	defer again.Close()
	n, _ := io.ReadFull(again, head)
	return head[:n]
}

// inCommon reports whether one of two files begins with the other, as far as the limit, and returns the
// length of the shorter one.
func inCommon(fsys fs.FS, name, other string, limit int64) (n int64, same bool) {
	a, err := fsys.Open(name)
	if err != nil {
		return 0, false
	}
	defer a.Close()
	b, err := fsys.Open(other)
	if err != nil {
		return 0, false
	}
	defer b.Close()
	const part = 1 << 16
	left, right := bufio.NewReaderSize(a, part), bufio.NewReaderSize(b, part)
	for n < limit {
		p, errA := left.Peek(int(min(part, limit-n)))
		q, errB := right.Peek(len(p))
		if !bytes.Equal(p, q) || errB != nil && errB != io.EOF {
			return 0, false
		}
		n += int64(len(p))
		if errA != nil {
			return n, errA == io.EOF
		}
		left.Discard(len(p))
		right.Discard(len(p))
	}
	return n, true
}
