package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// LostError says that a run has lost its logdir: it was moved, or replaced, or
// another run has it because the lock file was removed. The run ends, because
// writing under the logdir's name could harm others.
type LostError struct {
	Logdir string
	// Place is where the logdir was moved to, for a last checkpoint. It is ""
	// if no place is safe.
	Place string
	Err   error // a *LockedError if another run has the logdir
}

func (e *LostError) Error() string {
	var locked *LockedError
	switch {
	case errors.As(e.Err, &locked):
		return fmt.Sprintf("the lock on logdir %s is lost: %s was removed, replaced or written by another host, and %v has it now; this run ends and writes nothing more there",
			e.Logdir, LockFile, locked.Holder)
	case errors.Is(e.Err, errTaken):
		return fmt.Sprintf("logdir %s is lost: %v; this run ends, and has no place to save; if the training itself has made that folder, start it again: it continues with what is there", e.Logdir, e.Err)
	case e.Place == "":
		return fmt.Sprintf("logdir %s is lost: %v; this run ends, and has no place to save", e.Logdir, e.Err)
	}
	return fmt.Sprintf("logdir %s was moved to %s; this run ends, and what it has saved is there", e.Logdir, e.Place)
}

func (e *LostError) Unwrap() error { return e.Err }

var (
	errMoved   = errors.New("it was moved")
	errDeleted = errors.New("it was deleted")
	errTaken   = errors.New("another folder has its name")
)

// hold records which folder is locked.
func (l *Lock) hold(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	f, err := os.Open(abs)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.dir, l.handle, l.info = abs, f, info
	return nil
}

// Held checks whether the lock still keeps others out of the logdir. A deleted
// lock file or logdir that nobody else has taken is created again, with a line
// in the log; [Lock.Relocked] counts them. The error is a [*LostError],
// the same one from then on; anything that cannot be checked counts as
// unchanged.
func (l *Lock) Held() error {
	if l == nil || l.handle == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.look()
	}
	if l.lost != nil {
		return l.lost
	}
	return nil
}

// Try calls do, which makes files in a logdir, once held reports that the logdir is there, and
// again if it was deleted in between: held, such as [Lock.Held], makes it again, with its lock.
// What do makes itself must not be the logdir.
func Try(held, do func() error) error {
	for attempt := 1; ; attempt++ {
		if err := held(); err != nil {
			return err
		}
		if err := do(); !errors.Is(err, fs.ErrNotExist) || attempt == remakeAttempts {
			return err
		}
	}
}

// Expect says which names files have that others write into the logdir for this run, such as
// servers that save its model: these may make a deleted logdir again before the run does. nil is
// none.
func (l *Lock) Expect(isOwn func(name string) bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOwn = isOwn
}

// Dir returns the logdir, as an absolute path.
func (l *Lock) Dir() string { return l.dir }

// Relocked returns how often the lock file was created again, in a logdir that is still
// there or in one that was made again. What else was in the logdir is then often gone, too.
func (l *Lock) Relocked() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.relocked
}

// look is Held for a lock that was not lost before.
func (l *Lock) look() {
	now, err := os.Stat(l.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.lost = l.lose()
	case err != nil:
		return
	case !os.SameFile(now, l.info):
		l.lost = l.lose()
	default:
		l.lost = l.mend()
	}
	if l.lost != nil {
		l.log.Error("logdir is lost", "err", l.lost)
	}
}

// isAt reports whether the locked file is the one in a folder.
func (l *Lock) isAt(dir string) bool {
	mine, err := l.file.Stat()
	if err != nil {
		return true // not to be known
	}
	there, err := os.Lstat(filepath.Join(dir, LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || os.SameFile(mine, there)
}

// other returns the process that has written its name into the lock file after
// this one, and the zero Holder for none. Some file systems, such as NFS without
// a lock service, lock out the processes of one host only.
func (l *Lock) other() Holder {
	dir := filepath.Dir(l.file.Name())
	if !l.isAt(dir) {
		return Holder{}
	}
	return l.otherIn(dir)
}

// otherIn is other for a folder that has the lock file.
func (l *Lock) otherIn(dir string) Holder {
	if l.holder.PID == 0 {
		return Holder{}
	}
	now, err := holderOf(filepath.Join(dir, LockFile)) // opened again, for a cache may have kept the old content
	if err != nil || now.PID == l.holder.PID && now.Host == l.holder.Host {
		return Holder{}
	}
	return now
}

// mend makes the lock file again if it is not the one that is locked. The lock is lost if another
// process has written its name there. If the folder is being removed, its lock file may be removed
// first.
func (l *Lock) mend() *LostError {
	if l.isAt(l.dir) {
		if h := l.otherIn(l.dir); h.PID != 0 {
			return &LostError{Logdir: l.dir, Err: &LockedError{Logdir: l.dir, File: l.file.Name(), Holder: h}}
		}
		return nil
	}
	err := l.relock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.lose()
	case err != nil:
		return &LostError{Logdir: l.dir, Err: err}
	}
	l.log.Warn("the lock file was removed while the run needs it; the logdir is locked again", "file", filepath.Join(l.dir, LockFile))
	return nil
}

// relock locks what is at the logdir's path now.
func (l *Lock) relock() error {
	again, holder, err := acquireLock(filepath.Join(l.dir, LockFile))
	switch {
	case err != nil:
		return err
	case again == nil:
		return &LockedError{Logdir: l.dir, File: filepath.Join(l.dir, LockFile), Holder: holder}
	}
	if err := again.write(l.holder); err != nil {
		return errors.Join(err, again.Release())
	}
	unlockClose(l.file) // nobody can find it any more
	l.file, l.holder, l.remove = again.file, again.holder, again.remove
	l.relocked++
	return nil
}

// lose finds out what became of a logdir that is not at its path any more. It
// returns nil if it was deleted and could be made again.
func (l *Lock) lose() *LostError {
	lost := &LostError{Logdir: l.dir, Err: errMoved}
	if place, known := pathOf(l.handle); known {
		if info, err := os.Stat(place); err == nil && os.SameFile(info, l.info) {
			if l.isAt(place) {
				lost.Place = place
			}
			return lost
		}
		lost.Err = errDeleted
	} else if _, err := l.handle.ReadDir(1); err == nil {
		return lost // it has files, but nobody knows where
	}
	var err error
	for range remakeAttempts {
		if err = l.remake(); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		lost.Err = fmt.Errorf("%w, and %w", lost.Err, err) // one line
		return lost
	}
	l.log.Error("logdir was deleted, with its checkpoints and events; it is made again", "logdir", l.dir)
	return nil
}

// remakeAttempts is how often a deleted logdir is made again while somebody is still
// deleting it.
const remakeAttempts = 3

// remake makes a deleted logdir again and locks it. A folder that has come in
// its place is taken only if it has no files but this run's.
func (l *Lock) remake() error {
	if err := atomicfile.MkdirAllSync(nil, l.dir); err != nil { // a checkpoint in it is to outlive a power cut
		return err
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	isOther := func(e fs.DirEntry) bool { return l.isOwn == nil || !l.isOwn(e.Name()) }
	if slices.ContainsFunc(entries, isOther) {
		return errTaken
	}
	if err := l.relock(); err != nil {
		return err
	}
	old := l.handle
	if err := l.hold(l.dir); err != nil {
		return err
	}
	return old.Close()
}
