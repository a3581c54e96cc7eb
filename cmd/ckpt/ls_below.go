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
// with why each stays. A folder that is itself a checkpoint of another program, and
// those that people hide, are not searched.
func listBelow(dir string) (all []listed, err error) {
	var errs []error
	known := make(map[string]bool) // folders that are checkpoints
	err = walkdir.Walk(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err != nil || path != dir && !d.IsDir():
			return nil // a folder that may not be read has none for us
		case path != dir && (known[path] || strings.HasPrefix(d.Name(), ".") || d.Name() == manifest.RecordsDir):
			return fs.SkipDir
		}
		list, err := listCheckpoints(path)
		if err != nil && path == dir && list == nil {
			return err
		}
		list = slices.DeleteFunc(list, func(l listed) bool { return l.record == nil && known[filepath.Clean(l.Prefix)] }) // trainerd has it
		errs = append(errs, err, explain(path, list))
		for _, l := range list {
			for _, name := range l.names() {
				known[name] = true
			}
		}
		all = slices.Concat(all, list)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, errors.Join(errs...)
}
