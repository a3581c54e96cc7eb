package integrity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
)

// maxListing bounds what is read of a file that lists others.
const maxListing = 256 << 20

// checkFolder looks whether all is there that the files of a folder say belongs
// to it. files are all of the checkpoint.
func (x *checker) checkFolder(dir string, files []string) error {
	var own []string
	for _, name := range files {
		if path.Dir(name) == dir {
			own = append(own, path.Base(name))
		}
	}
	for _, check := range []func(dir string, own, all []string) error{x.checkIndexes, checkNumbered, x.checkDistributed, x.checkOrbax, x.checkLatest, checkRanks} {
		if err := check(dir, own, files); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// unmarshal reads JSON as far as it has the form of v: a program may use a file of that name for
// something else, which is not damage.
func unmarshal(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other {
		return nil
	}
	return err
}

// read returns the content of a file that lists others.
func (x *checker) read(name string) ([]byte, error) {
	f, err := x.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxListing+1))
	if err == nil && len(b) > maxListing {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("it is too large for a list of files")}
	}
	return b, err
}
