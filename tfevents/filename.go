package tfevents

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// filePrefix begins the name of every events file that TensorFlow writes.
const filePrefix = "events.out.tfevents."

// maxNameSeconds is the last second whose names sort by time.
const maxNameSeconds = 9999999999

// IsEventsFile reports whether TensorBoard treats a file of that name as an
// events file.
func IsEventsFile(name string) bool {
	return strings.Contains(filepath.Base(name), "tfevents")
}

// createFile creates a file whose name sorts after those of all events files in dir, since
// TensorBoard reads them in that order and assumes that it is the order of time. The name carries
// the given second, or the next one that fits. It never opens a file that exists: TensorFlow does,
// and two writers within one second then leave only the events of the later one.
func createFile(fsys FS, dir string, seconds int64, form Form, tail string) (f atomicfile.File, at int64, err error) {
	for tries := 0; ; tries++ {
		last, err := lastEventsFile(dir)
		if err != nil {
			return nil, 0, err
		}
		at := secondsAfter(last, seconds, form, tail)
		name := filepath.Join(dir, form.fileName(at, tail))
		f, err := fsys.Create(name)
		if err == nil {
			return f, at, nil
		}
		// Another writer took the name since the directory was read.
		if !errors.Is(err, fs.ErrExist) || tries == 100 {
			return nil, 0, err
		}
		seconds = max(seconds, at) + 1
	}
}

// lastEventsFile returns the name that sorts last among the files of dir that
// are named as TensorFlow names them.
func lastEventsFile(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	last := ""
	for _, e := range entries {
		if _, ok := nameSeconds(e.Name()); ok && e.Name() > last {
			last = e.Name()
		}
	}
	return last, nil
}

// nameSeconds returns the second that the name of an events file carries.
func nameSeconds(name string) (int64, bool) {
	rest, ok := strings.CutPrefix(name, filePrefix)
	if !ok {
		return 0, false
	}
	digits, _, ok := strings.Cut(rest, ".")
	if !ok || len(digits) != 10 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	return int64(n), err == nil
}

// secondsAfter returns the first second, not before the given one, whose file
// name sorts after last.
func secondsAfter(last string, seconds int64, form Form, tail string) int64 {
	seconds = min(max(seconds, 0), maxNameSeconds)
	if form.fileName(seconds, tail) > last {
		return seconds
	}
	taken, _ := nameSeconds(last)
	switch {
	case form.fileName(taken, tail) > last:
		return taken
	case taken == maxNameSeconds:
		return seconds // nothing sorts after that one
	}
	return taken + 1
}

// fileTail returns what follows the second in file names.
func fileTail(form Form, host string, pid int, number int64, suffix string) string {
	if form.numbered() {
		return fmt.Sprintf("%s.%d.%d%s", host, pid, number, suffix)
	}
	return host + suffix
}

// checkTail refuses a host or suffix that would name a file elsewhere.
func checkTail(tail string) error {
	if strings.ContainsAny(tail, `/\`) || strings.ContainsRune(tail, 0) || len(tail) > math.MaxUint8-len(filePrefix)-11 {
		return fmt.Errorf("tfevents: host name and suffix %q cannot be part of a file name", tail)
	}
	return nil
}
