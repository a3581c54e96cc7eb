package main

import (
	"context"
	"io"
	"os"
)

// interruptible reads what may never come, as from a terminal or a pipe. When the command
// is interrupted, a read that waits is left behind, and ends with the process.
type interruptible struct {
	ctx context.Context
	r   io.Reader
	buf []byte // of the read that may be left behind
}

func (i *interruptible) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if len(i.buf) < len(b) {
		i.buf = make([]byte, len(b))
	}
	buf := i.buf[:len(b)]
	return unlessInterrupted(i.ctx, func() (n int, err error) { return i.r.Read(buf) }, func(n int) { copy(b, buf[:n]) })
}

// openFile opens a file. A named pipe waits for its writer, until the command is interrupted.
func openFile(ctx context.Context, path string) (file *os.File, in io.Reader, err error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		file, err = os.Open(path)
		return file, file, err
	}
	file, err = unlessInterrupted(ctx, func() (*os.File, error) { return os.Open(path) }, func(*os.File) {})
	return file, &interruptible{ctx: ctx, r: file}, err
}

// unlessInterrupted calls f, and done with what it returns, unless ctx ends first.
func unlessInterrupted[T any](ctx context.Context, f func() (T, error), done func(T)) (result T, err error) {
	finished := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(finished)
		got, failed = f()
	}()
	select {
	case <-ctx.Done():
		return result, ctx.Err()
	case <-finished:
		done(got)
		return got, failed
	}
}
