package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// newFileSet is a set of files that a command makes. They get their names when all
// are complete and on the disk, which is asked for that only once. The files may be
// written at the same time.
type newFileSet struct {
	rehearsal bool // nothing is made

	mu     sync.Mutex
	files  []newFile
	dirs   []string       // that were made, each after its parent
	reader chan os.Signal // see outliveReader; nil until there is something to remove
}

// newFile is a file that has its content, but not its name.
type newFile struct{ temp, name string }

// records writes a new file of records.
func (s *newFileSet) records(name string, write func(*tfrecord.Writer) error) error {
	return s.write(name, func(w io.Writer) error { return write(tfrecord.NewWriter(w)) })
}

// write writes a new file. Its directory must exist.
func (s *newFileSet) write(name string, write func(io.Writer) error) error {
	if s.rehearsal {
		return write(io.Discard)
	}
	if _, err := os.Lstat(name); err == nil {
		return &fs.PathError{Op: "create", Path: name, Err: syscall.EEXIST}
	}
	s.outliveReader()
	// A name that no reader of log directories takes for an events file.
	temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".unfinished-%016x", rand.Uint64()))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrNotExist) { // which would mean that there is nothing to read
		return fmt.Errorf("%s: its directory does not exist", name)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.files = append(s.files, newFile{temp, name})
	s.mu.Unlock()
	buf := bufio.NewWriterSize(f, 1<<16)
	if err = write(buf); err == nil {
		err = buf.Flush()
	}
	return errors.Join(err, f.Close())
}

// outliveReader makes writing to a pipe that nobody reads an error until the set is
// discarded, also on the standard outputs, where it ends a Go program by
// default: nobody would remove the files.
func (s *newFileSet) outliveReader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == nil {
		s.reader = make(chan os.Signal, 1)
		signal.Notify(s.reader, syscall.SIGPIPE)
	}
}

// mkdir makes a directory, and its parents, for the files of the set.
func (s *newFileSet) mkdir(name string) error {
	if s.rehearsal {
		return nil
	}
	s.outliveReader()
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []string
	for {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			break // MkdirAll says what is wrong with it
		}
		missing = append(missing, name)
		name = filepath.Dir(name)
	}
	if len(missing) == 0 {
		return os.MkdirAll(name, 0o777)
	}
	slices.Reverse(missing)
	s.dirs = append(s.dirs, missing...)
	return os.MkdirAll(missing[len(missing)-1], 0o777)
}

// publish gives the files their names, or none of them.
func (s *newFileSet) publish() error {
	temps := make([]string, len(s.files))
	for i, f := range s.files {
		temps[i] = f.temp
	}
	if err := atomicfile.SyncAll(temps); err != nil {
		return err
	}
	slices.SortFunc(s.files, func(a, b newFile) int { return strings.Compare(a.name, b.name) })
	for i, f := range s.files {
		if err := giveName(f.temp, f.name); err != nil {
			for _, f := range s.files[:i] {
				err = errors.Join(err, os.Remove(f.name))
			}
			s.files = s.files[i:]
			return err
		}
	}
	s.files, s.dirs = nil, nil
	return nil
}

// discard removes what has not been published. What is left over of it has names that
// no reader of log directories knows.
func (s *newFileSet) discard() {
	for _, f := range s.files {
		_ = os.Remove(f.temp)
	}
	for _, dir := range slices.Backward(s.dirs) {
		_ = os.Remove(dir) // unless somebody else uses it by now
	}
	s.files, s.dirs = nil, nil
	if s.reader != nil {
		signal.Stop(s.reader)
		s.reader = nil
	}
}

// giveName renames a file unless there is one of that name.
func giveName(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	// A file system without hard links.
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.EEXIST}
	}
	return os.Rename(from, to)
}
