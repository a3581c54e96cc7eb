package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/walkdir"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/report"
)

// findRuns returns the runs in folders, by name. If folders below these cannot be read,
// such as other users', the error is a [*unreadError], and the other runs are returned too.
func findRuns(ctx context.Context, dirs []string) ([]*runState, error) {
	var f runFinder
	for _, dir := range dirs {
		if err := walkdir.Walk(dir, f.lookIn(dir)); err != nil {
			return nil, err
		}
	}
	f.addLinked()
	slices.Sort(f.found)
	all, err := statesOf(ctx, slices.Compact(f.found))
	if err == nil && len(f.unread) > 0 {
		err = &unreadError{f.unread}
	}
	return all, err
}

// unreadError says which folders may have runs that are not known.
type unreadError struct{ errs []error }

func (e *unreadError) Error() string {
	text := fmt.Sprintf("a folder cannot be searched for runs: %v", e.errs[0])
	if more := len(e.errs) - 1; more > 0 {
		text += fmt.Sprintf("; so it is with %d more", more)
	}
	return text
}

func (e *unreadError) Unwrap() []error { return e.errs }

// runFinder collects the logdirs of runs.
type runFinder struct {
	found  []string
	links  []string // to such, in the place of a folder
	unread []error
}

// lookIn returns what looks at each folder below a root.
func (f *runFinder) lookIn(root string) fs.WalkDirFunc {
	top := "" // the run that was found last, but for those in it
	return func(path string, d fs.DirEntry, err error) error {
		if err != nil && path == root {
			return err
		}
		isLink := d != nil && d.Type()&fs.ModeSymlink != 0
		if isLink {
			err = unreadLink(path)
		}
		isWithin := top != "" && (top == root || strings.HasPrefix(path, top+string(filepath.Separator)))
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			f.unread = append(f.unread, err)
		case err != nil, !d.IsDir() && !isLink, !isRun(path), isWithin && !hasOwnRun(path):
		case isLink:
			f.links = append(f.links, path)
		default:
			if f.found = append(f.found, path); !isWithin {
				top = path
			}
		}
		return nil
	}
}

// unreadLink returns an error for a link that this user may not follow, as those to the
// logdirs of services are.
func unreadLink(link string) error {
	if _, err := os.Stat(link); errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// addLinked adds the runs to which links lead, unless they were found by their own names.
func (f *runFinder) addLinked() {
	if len(f.links) == 0 {
		return
	}
	known := make(map[string]bool)
	for _, name := range slices.Concat(f.found, f.links) {
		place, err := filepath.EvalSymlinks(name)
		if err == nil {
			place, err = filepath.Abs(place)
		}
		if err != nil {
			continue // it was removed
		}
		if isLink := slices.Contains(f.links, name); isLink && !known[place] {
			f.found = append(f.found, name)
		}
		known[place] = true
	}
}

// isRun reports whether a folder is the logdir of a run, even of a program that only
// saves as TensorFlow does.
func isRun(dir string) bool { return hasOwnRun(dir) || isFile(filepath.Join(dir, ckptdir.StateName)) }

// hasOwnRun reports whether a run of ours has or had a folder as its logdir, which may be in
// that of another run. The folders that a run makes in its logdir do not count.
func hasOwnRun(dir string) bool {
	return isFile(filepath.Join(dir, logdir.LockFile)) || isFile(filepath.Join(dir, report.JSONName))
}

func isFile(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// statesOf returns the states of runs.
func statesOf(ctx context.Context, found []string) ([]*runState, error) {
	all := make([]*runState, len(found))
	errs := make([]error, len(found))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, dir := range found {
		slots <- struct{}{}
		wait.Go(func() {
			all[i], errs[i] = stateOf(ctx, dir)
			if errors.Is(errs[i], fs.ErrNotExist) {
				all[i], errs[i] = nil, nil // it was deleted meanwhile
			}
			<-slots
		})
	}
	wait.Wait()
	return slices.DeleteFunc(all, func(r *runState) bool { return r == nil }), errors.Join(errs...)
}
