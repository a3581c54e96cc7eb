package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// saved is a model in a directory, as it was at some step.
type saved struct {
	path    string
	numbers []int64 // in its name: epoch, step
	time    time.Time
}

// shardName matches the files of a model that an index names.
var shardName = lazyregexp.New(`-[0-9]{5}-of-[0-9]{5}\.[a-z]+$|_[0-9]{5}\.weights\.h5$`)

// savedIn returns the checkpoints in a directory, and the files and folders of other
// formats whose names have numbers, by these.
func savedIn(dir string) ([]saved, error) {
	checkpoints, err := ckptdir.List(dir)
	if err != nil {
		return nil, err
	}
	var list []saved
	for _, ck := range checkpoints {
		list = append(list, saved{ck.Prefix, []int64{ck.Step}, ck.Time})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		s, ok, err := otherFormat(dir, e)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b saved) int {
		return cmp.Or(slices.Compare(a.numbers, b.numbers), a.time.Compare(b.time))
	})
	return list, nil
}

// otherFormat returns what an entry of a directory is, if that is a model of some step, and
// no checkpoint.
func otherFormat(dir string, e fs.DirEntry) (s saved, ok bool, err error) {
	s = saved{path: filepath.Join(dir, e.Name()), numbers: numbersIn(e.Name())}
	if len(s.numbers) == 0 || strings.HasPrefix(e.Name(), ".") || shardName().MatchString(e.Name()) {
		return s, false, nil
	}
	f, err := formats.Find(s.path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return s, false, err
	case err != nil, f.Kind == formats.Checkpoint, f.Path == filepath.Clean(dir):
		return s, false, nil
	}
	info, err := e.Info()
	if err == nil {
		s.time = info.ModTime()
	}
	return s, true, err
}

// numbersIn returns the whole numbers in the name of a file.
func numbersIn(name string) []int64 {
	name = strings.TrimSuffix(strings.TrimSuffix(name, filepath.Ext(name)), ".weights") // .h5 has none
	var list []int64
	for _, digits := range strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			list = append(list, n)
		}
	}
	return list
}
