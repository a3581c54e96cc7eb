package logdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// SelfTest tests whether a file system meets the requirements of a logdir: that
// a rename replaces a file atomically, that synced data is there, that a lock
// keeps others out. Use it for file systems such as NFS and FUSE before
// trusting a training to them.
type SelfTest struct {
	// Dir is a directory on the file system. Everything created in it is
	// removed.
	Dir string
	// TryLock makes another process try to lock a directory, and returns the
	// result of [Check] there. If nil, this process tries, which on some file
	// systems its own locks do not keep out.
	TryLock func(ctx context.Context, dir string) error

	fs atomicfile.FS // nil for the operating system's
}

// SelfTestResult is the result of one part of a [SelfTest].
type SelfTestResult struct {
	Name   string
	Detail string // of what works
	// Err says what does not work. With Warning it is tolerable.
	Err     error
	Warning bool
}

// Sizes of what a self-test does.
const (
	selfTestBytes    = 1 << 20
	selfTestSyncs    = 10
	selfTestRenames  = 100
	selfTestVersion  = 64 << 10
	lowSpace         = 1 << 30
	maxClockDistance = 2 * time.Second
)

// Run returns a result for each part, in order. It fails if there is no
// directory to begin with.
func (s *SelfTest) Run(ctx context.Context) ([]SelfTestResult, error) {
	info, err := os.Stat(s.Dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &os.PathError{Op: "selftest", Path: s.Dir, Err: syscall.ENOTDIR}
	}
	dir := atomicfile.TempName(filepath.Join(s.Dir, "selftest"))
	var results []SelfTestResult
	add := func(name, detail string, err error, warning bool) {
		results = append(results, SelfTestResult{Name: name, Detail: detail, Err: err, Warning: warning && err != nil})
	}
	if err := s.files().Mkdir(dir); err != nil {
		add("directory", "", err, false)
		return results, nil
	}
	defer os.RemoveAll(dir)
	kind, lasting := fsKind(dir)
	if !lasting {
		err = fmt.Errorf("%s is in memory: nothing in it survives a restart of the machine", kind)
	}
	add("directory", kind, err, true)
	for _, part := range []struct {
		name    string
		try     func(ctx context.Context, dir string) (string, error)
		warning bool
	}{
		{"write", s.tryWrite, false},
		{"sync", s.trySync, false},
		{"rename", s.tryRename, false},
		{"create", s.tryCreate, false},
		{"lock", s.tryLock, false},
		{"clock", s.tryClock, true},
		{"space", s.trySpace, true},
	} {
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		detail, err := part.try(ctx, dir)
		add(part.name, detail, err, part.warning)
	}
	return results, nil
}

func (s *SelfTest) files() atomicfile.FS { return atomicfile.OrOS(s.fs) }

// tryWrite reads back what it has written.
func (s *SelfTest) tryWrite(_ context.Context, dir string) (string, error) {
	want := make([]byte, selfTestBytes)
	for i := range want {
		want[i] = byte(i ^ i>>8)
	}
	name, begun := filepath.Join(dir, "write"), time.Now()
	if err := atomicfile.WriteFile(s.files(), name, want); err != nil {
		return "", err
	}
	took := time.Since(begun)
	got, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(got, want) {
		return "", fmt.Errorf("%d bytes were written, and %d others are read", len(want), len(got))
	}
	return fmt.Sprintf("1 MiB written, synced and read back in %v", took.Round(time.Microsecond)), nil
}

// trySync measures how long a small file takes to become durable.
func (s *SelfTest) trySync(_ context.Context, dir string) (string, error) {
	var times []time.Duration
	for i := range selfTestSyncs {
		begun := time.Now()
		if err := atomicfile.WriteFile(s.files(), filepath.Join(dir, fmt.Sprint("sync", i)), []byte("x")); err != nil {
			return "", err
		}
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	return fmt.Sprintf("a small file and its directory in %v", times[len(times)/2].Round(time.Microsecond)), nil
}

// tryRename replaces a file while another goroutine reads it, which must see
// one version or the next, whole.
func (s *SelfTest) tryRename(_ context.Context, dir string) (string, error) {
	name := filepath.Join(dir, "rename")
	version := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, selfTestVersion) }
	if err := atomicfile.WriteFile(s.files(), name, version(0)); err != nil {
		return "", err
	}
	stop, seen := make(chan struct{}), make(chan error, 1)
	go func() { seen <- readVersions(name, stop) }()
	var failed error
	for i := 1; i <= selfTestRenames && failed == nil && len(seen) == 0; i++ {
		temp := atomicfile.TempName(name)
		if failed = os.WriteFile(temp, version(i), 0o666); failed == nil {
			failed = s.files().Rename(temp, name)
		}
	}
	close(stop)
	if err := errors.Join(failed, <-seen); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %d times under a reader", selfTestRenames), nil
}

// readVersions reads a file again and again, at least once.
func readVersions(name string, stop <-chan struct{}) error {
	for {
		b, err := os.ReadFile(name)
		switch {
		case errors.Is(err, syscall.ESTALE): // NFS, for a file that was replaced before it was read
		case err != nil:
			return fmt.Errorf("while a file was replaced it could not be read: %w", err)
		case len(b) != selfTestVersion || bytes.Count(b, b[:1]) != len(b):
			return errors.New("while a file was replaced neither the old one nor the new one was read")
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// tryCreate makes a file twice.
func (s *SelfTest) tryCreate(_ context.Context, dir string) (string, error) {
	name := filepath.Join(dir, "create")
	f, err := s.files().Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	again, err := s.files().Create(name)
	if err == nil {
		again.Close()
		return "", errors.New("an existing file could be created again")
	}
	if !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return "an existing file is not created again", nil
}

// tryLock locks a directory out of the reach of another process.
func (s *SelfTest) tryLock(ctx context.Context, dir string) (string, error) {
	try := s.TryLock
	if try == nil {
		try = func(_ context.Context, dir string) error { return Check(dir) }
	}
	lock, err := Acquire(dir, nil)
	if err != nil {
		return "", err
	}
	var locked *LockedError
	if err := try(ctx, dir); err == nil {
		return "", errors.Join(errors.New("two processes can lock the same directory, so that two runs could write to one logdir"), lock.Release())
	} else if !errors.As(err, &locked) {
		return "", errors.Join(err, lock.Release())
	}
	if err := lock.Release(); err != nil {
		return "", err
	}
	if err := try(ctx, dir); err != nil {
		return "", fmt.Errorf("locking again after a release: %w", err)
	}
	return "other processes are locked out, and admitted after the release", nil
}

// tryClock compares the time of a new file with this machine's.
func (s *SelfTest) tryClock(_ context.Context, dir string) (string, error) {
	name, begun := filepath.Join(dir, "clock"), time.Now()
	if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
		return "", err
	}
	ended := time.Now()
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	at := info.ModTime()
	if distance := max(begun.Sub(at), at.Sub(ended)); distance > maxClockDistance {
		return "", fmt.Errorf("file times differ from the local clock by %v", distance.Round(time.Millisecond))
	}
	return "file times agree with the local clock", nil
}

func (s *SelfTest) trySpace(_ context.Context, dir string) (string, error) {
	free, err := FreeSpace(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return "not known on this system", nil
	}
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
	if free < lowSpace {
		return "", fmt.Errorf("only %s", text)
	}
	return text, nil
}

// Report writes a line for each result, and returns an error that names the
// failed parts.
func (s *SelfTest) Report(w io.Writer, results []SelfTestResult) error {
	var failed error
	for _, r := range results {
		verdict, text := "ok", r.Detail
		switch {
		case r.Warning:
			verdict, text = "note", r.Err.Error()
		case r.Err != nil:
			verdict, text = "FAILED", r.Err.Error()
			failed = errors.Join(failed, &SelfTestError{Dir: s.Dir, Part: r.Name, Err: r.Err})
		}
		if _, err := fmt.Fprintf(w, "%-10s %-6s  %s\n", r.Name, verdict, text); err != nil {
			return err
		}
	}
	return failed
}

// SelfTestError says that a file system is not suitable for a logdir.
type SelfTestError struct {
	Dir, Part string
	Err       error
}

func (e *SelfTestError) Error() string {
	return fmt.Sprintf("%s is not fit for a logdir: %s: %v", e.Dir, e.Part, e.Err)
}

// Unwrap returns the cause.
func (e *SelfTestError) Unwrap() error { return e.Err }
