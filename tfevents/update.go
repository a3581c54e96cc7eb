package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// indexedFile is how far an index has read a file.
type indexedFile struct {
	name   string
	info   fs.FileInfo // before it was read last; nil if that is unknown
	next   int64       // where reading continues
	tail   []byte      // what is just before that
	damage []error     // up to there, and what could not be read after it
	ended  bool        // nothing more is read of it, as the purge mode's model does
	failed bool        // the system could not read all of it, which it may later
	head   []byte      // its beginning
	begin  int64       // what is before is that of another file
}

// Update adds new files of the run, and what was appended to the last one. It reads nothing
// twice except an incomplete record. It reports whether it found anything, and whether the
// index is still valid: it is not if a file is gone, was replaced or overwritten, or if any
// file but the last has changed, as when several writers share a folder. Then nothing was
// read, and the run must be indexed again. Update must not run concurrently with any other
// method of the index or of its series.
func (x *RunData) Update(files []string) (changed, ok bool) {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return !x.o.reads(name) })
	grown, ok := x.compare(files)
	if !ok {
		return false, false
	}
	if !grown && len(files) == len(x.files) {
		return false, true
	}
	if grown {
		x.readFrom(len(x.files) - 1)
	}
	for _, name := range files[len(x.files):] {
		x.rule.startFile(name)
		x.files = append(x.files, indexedFile{name: name})
		x.readFrom(len(x.files) - 1)
	}
	x.finish()
	return true, true
}

// compare compares the files that were read with those that exist. It reports whether the last one
// has grown.
func (x *RunData) compare(files []string) (grown, ok bool) {
	if len(files) < len(x.files) {
		return false, false
	}
	for i := range x.files {
		f := &x.files[i]
		if files[i] != f.name {
			return false, false
		}
		changed, ok := f.changed(x.fsys)
		last := i == len(x.files)-1
		if !ok || changed && (!last || f.begin > 0) {
			return false, false
		}
		grown = changed
	}
	return grown, true
}

// changed reports whether the file has new content, and whether the content that was read is still
// there.
func (f *indexedFile) changed(fsys fs.FS) (changed, ok bool) {
	if f.info == nil {
		return f.failed && f.readable(fsys), true
	}
	info, err := fs.Stat(fsys, f.name)
	if err != nil || replaced(f.info, info) || info.Size() < f.next {
		return true, false
	}
	changed = info.Size() != f.info.Size() || !info.ModTime().Equal(f.info.ModTime()) || info.Mode() != f.info.Mode()
	if changed && info.Size() == f.info.Size() && len(f.damage) > 0 && isBefore(f.damage[0], f.next) {
		return true, false // as after zeros in its middle that have been filled
	}
	if !changed {
		return f.failed && f.readable(fsys), true
	}
	return true, f.continues(fsys)
}

// readable reports whether the file can be read at the offset where reading stopped.
func (f *indexedFile) readable(fsys fs.FS) bool {
	file, err := fsys.Open(f.name)
	if err != nil {
		return false
	}
	defer file.Close()
	if err := seek(file, f.next); err != nil {
		return false
	}
	_, err = io.CopyN(io.Discard, file, retried)
	return err == nil || err == io.EOF
}

// retried is how many bytes must be readable after a failure before reading is tried again: more
// than the buffer that was being filled, and than most records.
const retried = 1 << 20

// continues reports whether a file still has the bytes that were read of it last, including
// checksums: overwriting it in place may leave the same inode, and not make it shorter.
func (f *indexedFile) continues(fsys fs.FS) bool {
	file, err := fsys.Open(f.name)
	if err != nil {
		return true // which reading reports
	}
	defer file.Close()
	return bytes.Equal(f.tail, tailOf(file, f.next))
}

// tailSize has room for the checksum of a record, and for the time and step of a short one.
const tailSize = 64

// tailOf returns the bytes just before an offset of a file, if they can be read.
func tailOf(file fs.File, offset int64) []byte {
	at, ok := file.(io.ReaderAt)
	if !ok {
		return nil
	}
	tail := make([]byte, min(offset, tailSize))
	if _, err := at.ReadAt(tail, offset-int64(len(tail))); err != nil && err != io.EOF {
		return nil
	}
	return tail
}

// replaced reports whether another file has taken the name, as far as the file system can
// distinguish files.
func replaced(before, now fs.FileInfo) bool {
	return before.Sys() != nil && now.Sys() != nil && !os.SameFile(before, now)
}

// readFrom reads a file from where reading stopped last.
func (x *RunData) readFrom(i int) {
	f := &x.files[i]
	if f.ended {
		return
	}
	if info, err := fs.Stat(x.fsys, f.name); err == nil {
		f.info = info // what is appended meanwhile is found the next time
	}
	f.damage = slices.DeleteFunc(f.damage, func(err error) bool { return !isBefore(err, f.next) })
	file, err := x.fsys.Open(f.name)
	f.failed = err != nil
	if err != nil {
		f.damage = append(f.damage, fmt.Errorf("tfevents: %w", err))
		return
	}
	defer file.Close()
	if f.next == 0 && x.o.Purge == PurgeExact {
		x.skipCopied(i, file)
	}
	next, skipped, err := x.o.eachRecordFrom(file, f.name, f.next, func(data []byte, at int64) error {
		return x.addRecord(data, i, at)
	})
	x.scan, x.facts = eventScan{}, eventFacts{} // which hold on to the reader's buffer
	f.next, f.tail = next, tailOf(file, next)
	f.damage = append(f.damage, skipped...)
	if err != nil {
		f.damage = append(f.damage, err)
		f.failed = x.o.thorough() && !isDamage(err)
		f.ended = !f.failed && !isTorn(err)
	}
}

// isBefore reports whether err is damage before an offset.
func isBefore(err error, offset int64) bool {
	var damage *tfrecord.CorruptError
	return errors.As(err, &damage) && damage.Offset < offset
}

// isDamage reports whether err is about the content of a file, and not about reading it.
func isDamage(err error) bool {
	var damage *tfrecord.CorruptError
	return errors.As(err, &damage)
}

// isTorn reports whether err says that a file ends within a record.
func isTorn(err error) bool {
	var damage *tfrecord.CorruptError
	return errors.As(err, &damage) && damage.Torn()
}

// finish sets the fields that summarize the run.
func (x *RunData) finish() {
	x.Purged = x.rule.purged
	x.Damage = nil
	for i := range x.files {
		x.Damage = append(x.Damage, x.files[i].damage...)
	}
	x.Series = make([]*Series, 0, len(x.all))
	for _, s := range x.all {
		if s.Len() > 0 {
			x.Series = append(x.Series, s)
		}
	}
	x.recount()
}
