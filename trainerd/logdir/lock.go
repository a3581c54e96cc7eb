// Package logdir ensures that a logdir has one writer, and tests whether its
// file system can be trusted.
//
// [Acquire] locks a folder through the file trainerd.lock in it, with flock if
// the file system supports it and otherwise by the file's existence. The file
// names its holder; a lock whose holder has died is taken over. [Lock.Held]
// checks again before each save, so a run whose logdir was moved, deleted or
// taken notices before it does harm. A [SelfTest] tests what a logdir requires
// of a file system.
//
// Locks are safe for concurrent use. Nothing here starts goroutines.
package logdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/internal/machine"
)

// LockFile is the file in a logdir that says which chief writes there. Its
// name must not contain "tfevents", or TensorBoard would read it.
const LockFile = "trainerd.lock"

// maxLockSize bounds what is read of a lock file.
const maxLockSize = 4 << 10

// Holder is the process that holds a logdir.
type Holder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Start time.Time `json:"start"` // when it locked the logdir
	// Boot names the time that the machine was on without a break, "" if that is not known.
	Boot string `json:"boot,omitempty"`
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d on host %s, since %s", h.PID, h.Host, h.Start.Format(time.RFC3339))
}

// LockedError says that another chief writes to the logdir.
type LockedError struct {
	Logdir string
	File   string // the lock file
	Holder Holder
	// ByName says that the holder's name in the file is the lock, because the file system has no
	// other. A process that has died still holds it, unless its death can be detected here.
	ByName bool
}

func (e *LockedError) Error() string {
	text := fmt.Sprintf("logdir %s is in use by %v; stop it first, or use another logdir", e.Logdir, e.Holder)
	if e.ByName {
		text += fmt.Sprintf("; this file system has no locks: if the process has died, remove %s", e.File)
	}
	return text
}

// Lock keeps other writers out of a logdir. A nil Lock is no lock.
type Lock struct {
	log    *slog.Logger
	dir    string      // absolute
	handle *os.File    // of the folder, wherever it is by now; nil for a lock that is not looked at again
	info   fs.FileInfo // of the folder
	taken  bool        // from a process that has died

	mu       sync.Mutex // guards what follows
	file     *os.File
	holder   Holder // what this process has written into the file
	remove   bool   // the file's existence is the lock
	relocked int    // how often the file was made again
	lost     *LostError
	isOwn    func(name string) bool // see Expect
}

func thisProcess() (Holder, error) {
	host, err := os.Hostname()
	return Holder{Host: host, PID: os.Getpid(), Start: time.Now().UTC().Truncate(time.Millisecond), Boot: machine.BootID()}, err
}

// Acquire locks a folder for this process. A Supervisor does so automatically.
// The error is a [*LockedError] if another process holds the folder. A lock whose
// holder has died is taken over, with a line in log, which may be nil.
func Acquire(dir string, log *slog.Logger) (*Lock, error) {
	log = logging.OrDiscard(log)
	me, err := thisProcess()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, LockFile)
	lock, holder, err := acquireLock(name)
	switch {
	case err != nil:
		return nil, lockError(dir, "locking logdir", err)
	case lock == nil:
		_, known := lockedByOther(name)
		return nil, &LockedError{Logdir: dir, File: name, Holder: holder, ByName: !known}
	}
	if holder.PID != 0 {
		log.Warn("taking over the logdir from a process that has ended without closing it", "logdir", dir,
			"host", holder.Host, "pid", holder.PID, "since", holder.Start)
	}
	lock.log, lock.taken = log, holder.PID != 0
	if err := errors.Join(lock.write(me), lock.hold(dir)); err != nil {
		return nil, fmt.Errorf("locking logdir: %w", errors.Join(err, lock.Release()))
	}
	return lock, nil
}

// lockError says what to do about a logdir that this user may not write.
func lockError(dir, doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("logdir %s is not writable: %w; change its permissions and those of its files, or use another logdir", dir, err)
	}
	return err
}

// TakenOver reports whether the process that had the lock before has died without
// releasing it.
func (l *Lock) TakenOver() bool { return l.taken }

// Holder returns what the lock file says about this process, even while the file is removed. It is
// zero for no lock.
func (l *Lock) Holder() Holder {
	if l == nil {
		return Holder{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder
}

// write names the holder in the lock file.
func (l *Lock) write(h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	l.holder = h
	_, err = l.file.WriteAt(append(b, '\n'), 0)
	return err
}

// Release unlocks the logdir. It must be called once. If the lock is on an open file, the file
// stays, empty: removing it would let two processes lock two files of the same name.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handle != nil {
		l.handle.Close()
	}
	if l.other().PID != 0 {
		return unlockClose(l.file) // it is another's, and has its name
	}
	if l.remove && (l.handle == nil || l.isAt(l.dir)) {
		return errors.Join(l.file.Close(), os.Remove(l.file.Name()))
	}
	if l.remove {
		return l.file.Close() // another's has its name
	}
	return errors.Join(l.file.Truncate(0), unlockClose(l.file))
}

// isGone reports whether a holder on the host of this process, which is me, has ended.
func (h Holder) isGone(me Holder) bool {
	rebooted := h.Boot != "" && me.Boot != "" && h.Boot != me.Boot // its number may be another's by now
	return rebooted || !processExists(h.PID) || h.hadThisPID(me)
}

// started is when this process began, or a little later.
var started = time.Now()

// hadThisPID reports whether a holder is an earlier process with the number of
// this one, as in a container that was started again.
func (h Holder) hadThisPID(me Holder) bool {
	return h.PID == me.PID && h.Start.Before(started.Truncate(time.Millisecond))
}

// readHolder returns who is named in a lock file, or the zero Holder.
func readHolder(f io.ReaderAt) Holder {
	var h Holder
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLockSize))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}

// lockByFile is the lock for systems and file systems without flock: the process that
// creates the file holds the lock. A file left by a process of this host that
// has ended is removed first.
func lockByFile(name string) (*Lock, Holder, error) {
	var dead Holder
	for range 2 {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return &Lock{file: f, remove: true}, dead, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, Holder{}, err
		}
		holder, err := holderOf(name)
		if err != nil {
			return nil, Holder{}, err
		}
		me, err := thisProcess()
		if err != nil {
			return nil, Holder{}, err
		}
		if holder.Host != me.Host || holder.PID == 0 || !holder.isGone(me) {
			return nil, holder, nil
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, Holder{}, err
		}
		dead = holder
	}
	return nil, Holder{}, nil
}

func holderOf(name string) (Holder, error) {
	f, err := atomicfile.Open(nil, name)
	if err != nil {
		return Holder{}, err
	}
	defer f.Close()
	return readHolder(f), nil
}
