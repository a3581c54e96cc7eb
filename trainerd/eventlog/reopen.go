package eventlog

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// isFailure reports whether an error is one of the disk.
func isFailure(ctx context.Context, err error) bool {
	_, failure := errors.AsType[*fs.PathError](err)
	return failure && ctx.Err() == nil
}

// Ready reports whether events can be written, and none wait; if it is time for another
// attempt, it begins a new file. One caller at a time does so; the events of others join
// those that it writes first.
func (l *Log) Ready(ctx context.Context) bool {
	if !l.isBroken() {
		return true
	}
	select {
	case l.reopening <- struct{}{}:
		defer func() { <-l.reopening }()
		return !l.isBroken() || l.isTime() && l.reopen(ctx)
	default:
		return false
	}
}

func (l *Log) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// failed records that the file is broken. The writer keeps what the file lacks for the next one.
func (l *Log) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return // another goroutine was first
	}
	l.broken = true
	l.pause = min(max(2*l.pause, firstRetry), maxRetry)
	l.retryAt = time.Now().Add(l.pause)
	l.log.Error("events file cannot be written; curves wait in memory until it can", "err", err, "retry_in", l.pause)
}

func (l *Log) isTime() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !time.Now().Before(l.retryAt)
}

// Renew has a new file begun with the next event: the current one was deleted.
func (l *Log) Renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renew()
}

func (l *Log) renew() { l.broken, l.retryAt = true, time.Time{} }

// Restart is Renew for a folder that was deleted and made again. The new file has a START at a step
// that has no points yet: TensorBoard's Python loader ignores a run's first START, which must not
// be that of a later resume.
func (l *Log) Restart(step int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renew()
	l.queue(lateStart(step))
}

// reopen begins a new file, with what waits. The caller has the room in l.reopening, and
// not l.mu: the disk may take long.
func (l *Log) reopen(ctx context.Context) bool {
	l.writer.Close() // fails with what was logged already
	written := l.handBack()
	err := l.writer.Reopen()
	for err == nil {
		if e, ok := l.next(); ok {
			if err = l.writeLate(ctx, e); err == nil {
				l.forget(e)
				written++
			}
			continue
		}
		if err = l.writer.Flush(ctx); err == nil && l.mend(written) {
			return true
		}
	}
	l.writer.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeBack()
	l.retryAt = time.Now().Add(l.pause)
	return false
}
