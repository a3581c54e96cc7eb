package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/walkdir"
)

// listBelow lists the checkpoints of a directory and of the folders below it,
// with why each stays.
func listBelow(dir string) (all []listed, err error) {
	var errs []error
	err = eachBelow(dir, func(path string, list []listed, err error) error {
		errs = append(errs, err, explain(path, list))
		all = slices.Concat(all, list)
		return nil
	}, func(_ string, err error) { errs = append(errs, err) })
	if err != nil {
		return nil, err
	}
	return all, errors.Join(errs...)
}

// eachBelow calls each with the checkpoints of a directory, and of each folder below it; err
// says which records of them cannot be read. unread is called with folders that cannot be. A
// folder that is itself a checkpoint of another program, and those that people hide, are not
// searched.
func eachBelow(dir string, each func(path string, list []listed, err error) error, unread func(path string, err error)) error {
	known := make(map[string]bool) // folders that are checkpoints
	return walkdir.Walk(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			unread(path, err)
			return nil
		case err != nil || path != dir && !d.IsDir():
			return nil
		case path != dir && (known[path] || strings.HasPrefix(d.Name(), ".") || d.Name() == manifest.RecordsDir):
			return fs.SkipDir
		}
		list, err := listCheckpoints(path)
		if err != nil && path == dir && list == nil {
			return err
		}
		list = slices.DeleteFunc(list, func(l listed) bool { return l.record == nil && known[filepath.Clean(l.Prefix)] }) // trainerd has it
		for _, l := range list {
			for _, name := range l.names() {
				known[name] = true
			}
		}
		return each(path, list, err)
	})
}
