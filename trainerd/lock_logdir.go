package trainerd

import "log/slog"

// LogdirLock keeps other processes that write to a logdir out of it.
type LogdirLock struct{ lock *dirLock }

// LockLogdir locks a folder for a process that writes to it without a
// [Supervisor], which does so by itself. The error is a [*LockedError] when
// another process has the folder. A lock whose holder has died is taken over,
// with a line in log; nil is no log.
func LockLogdir(dir string, log *slog.Logger) (*LogdirLock, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	lock, err := lockDir(dir, log)
	if err != nil {
		return nil, err
	}
	return &LogdirLock{lock}, nil
}

// Release gives the logdir free. It must be called once.
func (l *LogdirLock) Release() error { return l.lock.release() }
