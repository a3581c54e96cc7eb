package savedmodel

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// A SavedModel is first written into a temporary folder next to its place, which a killed process
// leaves behind. Its writer holds a lock on it, so that the next one can recognise abandoned
// folders and remove them. If folders cannot be locked, they stay.
var stagingName = lazyregexp.New(`^\..+\.tmp-[0-9]+$`)

// staging is a folder that is being written.
type staging struct {
	dir  string
	lock *os.File // nil where folders cannot be locked
}

// newStaging makes a folder for what will be called dir.
func newStaging(dir string) (*staging, error) {
	for {
		temp := filepath.Join(filepath.Dir(dir), fmt.Sprintf(".%s.tmp-%d", filepath.Base(dir), rand.Uint32()))
		err := os.Mkdir(temp, fs.ModePerm) // with the rights and the group that any new folder has there
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lock, state := lockFolder(temp)
		if state != lockTaken {
			return &staging{temp, lock}, nil
		}
		// Another process has found it before it was locked, and removes it.
	}
}

// remove removes what is left of the folder.
func (s *staging) remove() {
	os.RemoveAll(s.dir) // what cannot be removed now is left to the next writer
	if s.lock != nil {
		s.lock.Close()
	}
}

// sweepStaging removes the folders in parent that killed writers have left. Folders that remain do
// no harm.
func sweepStaging(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if !e.IsDir() || !stagingName().MatchString(e.Name()) || !isStaging(dir) {
			continue
		}
		if lock, state := lockFolder(dir); state == lockHeld {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}

// isStaging reports whether a folder holds nothing that [Write] does not write.
func isStaging(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	written := []string{fileName, kerasFileName, filepath.Dir(variables)}
	for _, e := range entries {
		if name := e.Name(); !slices.Contains(written, name) && !atomicfile.IsTemp(name) {
			return false
		}
	}
	return true
}

// lockState is the result of trying to lock a folder.
type lockState int

const (
	lockHeld    lockState = iota // by the caller
	lockTaken                    // by somebody else, or the folder is no more
	lockUnknown                  // folders cannot be locked here
)
