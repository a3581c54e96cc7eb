// Package atomicfile publishes files so that a crash or a power cut leaves
// either the old file or the whole new one, never a part.
//
// A new file is written under a temporary name next to its target, synced,
// renamed over the target, and the directory is synced: only then is it
// durable. The steps are separate methods of [Pending], because a checkpoint
// of several files syncs all of them before it renames the first.
//
//	p, err := atomicfile.Create(nil, "logdir/graph.pbtxt", "")
//	if err != nil { ... }
//	defer p.Close() // removes the temporary file unless it was published
//	if _, err := p.Write(text); err != nil { ... }
//	err = p.Commit()
//
// After a failed sync the kernel may have dropped the data, and a second sync
// may still report success. So a Pending fails permanently with its first
// error; the caller writes the file again.
package atomicfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// The names of temporary files: hidden, without any part of the target's name,
// for programs that watch a log directory take every file whose name holds a
// certain word for theirs.
const (
	tempPrefix = ".trainerd-"
	tempSuffix = ".tmp"
	tempDigits = 16
)

// FS is what publishing needs of a file system. A nil FS means the operating
// system's. Implementations are for tests that inject faults.
type FS interface {
	// Create makes a new file for writing. The name must not exist, not even
	// as a symbolic link.
	Create(name string) (File, error)
	// Rename replaces newname by oldname in one step.
	Rename(oldname, newname string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// Mkdir makes one directory. Its parent must exist.
	Mkdir(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// File is a file that [FS] made.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// OrOS returns fsys, or the operating system's file system when fsys is nil.
func OrOS(fsys FS) FS {
	if fsys == nil {
		return osFS{}
	}
	return fsys
}

// LongestName is how many bytes a name has at most, on nearly every file system.
const LongestName = 255

// TempName returns a new temporary name in the directory of name.
func TempName(name string) string {
	return filepath.Join(filepath.Dir(name), tempPrefix+hex.EncodeToString(random(tempDigits/2))+tempSuffix)
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails, by its documentation
	return b
}

// IsTemp reports whether the last element of a path is a name that [TempName]
// gives. Such a file, found when no writer is at work, was left by a crash.
func IsTemp(base string) bool {
	digits, ok := strings.CutPrefix(base, tempPrefix)
	if !ok {
		return false
	}
	digits, ok = strings.CutSuffix(digits, tempSuffix)
	return ok && len(digits) == tempDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// WriteFile publishes data under name.
func WriteFile(fsys FS, name string, data []byte) error {
	p, err := Create(fsys, name, "")
	if err != nil {
		return err
	}
	if _, err := p.Write(data); err != nil {
		return errors.Join(err, p.Close())
	}
	return errors.Join(p.Commit(), p.Close())
}

// RemoveIfExists deletes a file or an empty directory, if there is one of that name.
func RemoveIfExists(fsys FS, name string) error {
	if err := OrOS(fsys).Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirSync makes one directory and its name durable. That the directory
// exists already is not an error.
func MkdirSync(fsys FS, name string) error {
	fsys = OrOS(fsys)
	if err := fsys.Mkdir(name); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		fsys.Remove(name) // or the next call would take it for durable
		return err
	}
	return nil
}

// WithoutMaking returns a file system that does not make the directory dir, nor those
// above it.
func WithoutMaking(fsys FS, dir string) FS { return keeper{OrOS(fsys), dir} }

type keeper struct {
	FS
	dir string
}

func (k keeper) Mkdir(name string) error {
	dir, err := filepath.Abs(k.dir)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(abs, dir); err != nil || !filepath.IsLocal(rel) {
		return k.FS.Mkdir(name)
	}
	if _, err := os.Stat(name); err != nil {
		return err
	}
	return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
}

// MkdirAllSync makes a directory with its parents, and the names of all of them
// durable up to the root of the file system: also of those that are there
// already, for the process that made them may have been killed before it could
// sync them.
func MkdirAllSync(fsys FS, name string) error {
	name, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return SyncNames(fsys, name)
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if target, err := os.Readlink(name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fmt.Errorf("it is a link to %s, which does not exist", target)}
	}
	if parent := filepath.Dir(name); parent != name {
		if err := MkdirAllSync(fsys, parent); err != nil {
			return err
		}
	}
	return MkdirSync(fsys, name)
}

// SyncNames makes the names of a directory and of its parents durable. A parent
// that must not or cannot be synced is left alone: nothing was made in it from
// here.
func SyncNames(fsys FS, name string) error {
	fsys = OrOS(fsys)
	name, err := filepath.EvalSymlinks(name) // a link is made by hand, what it names may not be
	if err != nil {
		return err
	}
	for parent := filepath.Dir(name); parent != name && sameDevice(name, parent); name, parent = parent, filepath.Dir(parent) {
		if err := fsys.SyncDir(parent); err != nil && !CannotSync(err) {
			return err
		}
	}
	return nil
}

// CannotSync reports whether an error says that a file or directory is not to be synced
// by this process, or on this file system, rather than that it went wrong.
func CannotSync(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrPermission, syscall.EROFS, syscall.EINVAL, syscall.ENOSYS, errors.ErrUnsupported},
		func(target error) bool { return errors.Is(err, target) })
}

// Pending is a file that is written but not yet published. It is not safe for
// concurrent use. Its owner calls Close in the end.
type Pending struct {
	fsys    FS
	file    File // nil once it is closed
	name    string
	temp    string
	synced  bool
	renamed bool
	err     error // first failure; the file is lost
	early   earlyWriteback
	direct  *directWrites // nil where all goes through the page cache
}

// Create begins a file that will be published under name. It is written under
// the name temp, which must be in the same directory; "" means [TempName].
func Create(fsys FS, name, temp string) (*Pending, error) {
	fsys = OrOS(fsys)
	if temp == "" {
		temp = TempName(name)
	}
	file, err := fsys.Create(temp)
	if err != nil {
		return nil, fmt.Errorf("creating temporary file for %s: %w", name, err)
	}
	p := &Pending{fsys: fsys, file: file, name: name, temp: temp}
	p.early.disk, _ = file.(writebacker)
	return p, nil
}

// Name returns the name under which the file will be published.
func (p *Pending) Name() string { return p.name }

// Temp returns the name under which the file is written.
func (p *Pending) Temp() string { return p.temp }

// Write appends b.
func (p *Pending) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if p.file == nil {
		return 0, fs.ErrClosed
	}
	n, err := p.write(b)
	return n, p.fail("writing", err)
}

// toFile writes b itself.
func (p *Pending) toFile(b []byte) (int, error) {
	n, err := p.file.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	p.early.wrote(n)
	return n, err
}

// Sync makes the file's bytes durable and ends its writing.
func (p *Pending) Sync() error {
	if p.err != nil || p.synced {
		return p.err
	}
	if err := p.fail("writing", p.flush()); err != nil {
		return err
	}
	if err := p.fail("syncing", p.file.Sync()); err != nil {
		return err
	}
	err := p.file.Close()
	p.file = nil
	if err := p.fail("closing", err); err != nil {
		return err
	}
	p.synced = true
	return nil
}

// Rename syncs the file, unless that was done, and gives it its name. The name
// is durable after the directory is synced, which is left to the caller.
func (p *Pending) Rename() error {
	if p.renamed {
		return p.err
	}
	if err := p.Sync(); err != nil {
		return err
	}
	if err := p.fail("publishing", p.fsys.Rename(p.temp, p.name)); err != nil {
		return err
	}
	p.renamed = true
	return nil
}

// Commit publishes the file: [Pending.Sync], [Pending.Rename], then a sync of
// the directory. When only that last sync fails the file is there, whole, but
// a power cut may take it away.
func (p *Pending) Commit() error {
	if err := p.Rename(); err != nil {
		return err
	}
	return p.fail("publishing", p.fsys.SyncDir(filepath.Dir(p.name)))
}

// Close removes the temporary file of a Pending that was not published, and
// does nothing after Rename or Commit.
func (p *Pending) Close() error {
	if p.renamed || p.temp == "" {
		return nil
	}
	if p.file != nil {
		p.abandon()
		p.file.Close() // what it says does not matter, the file goes
	}
	err := p.fsys.Remove(p.temp)
	p.temp = ""
	if p.err == nil {
		p.err = fs.ErrClosed
	}
	return err
}

func (p *Pending) fail(doing string, err error) error {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%s %s: %w", doing, p.name, err)
	}
	if err != nil {
		return p.err
	}
	return nil
}
