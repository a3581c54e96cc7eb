package ckptdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
)

// A ProblemKind is a kind of problem in a directory.
type ProblemKind string

// The kinds of problems that [Check] finds.
const (
	// ProblemTemp is a file, or a directory of shards, left by a crash or
	// still being written. [SweepTemps] removes it.
	ProblemTemp ProblemKind = "temporary"
	// ProblemOrphan is a file that belongs to no checkpoint: one without its
	// index, or a data file whose number of shards differs from the index.
	ProblemOrphan ProblemKind = "orphan"
	// ProblemMissing is a data file that a checkpoint lacks.
	ProblemMissing ProblemKind = "missing"
	// ProblemStale is an entry of the state file for a checkpoint that does
	// not exist.
	ProblemStale ProblemKind = "stale"
	// ProblemState is a state file that TensorFlow ignores or rejects.
	ProblemState ProblemKind = "state"
)

// Problem is something wrong in a directory of checkpoints, but not within
// their tensors.
type Problem struct {
	Kind ProblemKind
	Path string // the file, or the prefix that the state file names
	Err  error
}

// Check looks for problems in a directory: leftovers, orphans, missing data files,
// and entries of the state file for checkpoints that do not exist. It does not read
// the bytes of checkpoints, as [ckptfmt.Reader].Verify and [manifest.Verify] do. It
// changes nothing.
func Check(dir string) ([]Problem, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []Problem
	for _, e := range entries {
		if e.Type().IsRegular() && layout.IsTemp(e.Name()) || e.IsDir() && tempDirPattern().MatchString(e.Name()) {
			found = append(found, Problem{ProblemTemp, filepath.Join(dir, e.Name()), errors.New("left by an unfinished save, or still being written")})
		}
	}
	candidates, err := scan(dir, "")
	if err != nil {
		return nil, err
	}
	for name, c := range candidates {
		found = append(found, c.problems(candidates, name)...)
	}
	found = append(found, stateProblems(dir)...)
	slices.SortStableFunc(found, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// problems returns what is wrong with the files of one name.
func (c *candidate) problems(all map[string]*candidate, name string) []Problem {
	if !c.main {
		return c.orphans(all, name)
	}
	if !c.V2() {
		return nil
	}
	r, err := ckptfmt.OpenBundle(c.Prefix, nil)
	if err != nil {
		return nil // what Verify says
	}
	defer r.Close()
	shards := r.NumShards()
	var found []Problem
	lacking := make(map[string]bool, shards)
	for i := range shards {
		lacking[layout.DataName(c.Prefix, i, shards)] = true
	}
	for _, file := range c.Files {
		if layout.PublishRank(strings.TrimPrefix(file, c.Prefix)) == 0 && !lacking[file] {
			found = append(found, Problem{ProblemOrphan, file, fmt.Errorf("it is not one of its checkpoint's %d shards", shards)})
		}
		delete(lacking, file)
	}
	for file := range lacking {
		found = append(found, Problem{ProblemMissing, file, &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}})
	}
	return found
}

// orphans returns the files of an incomplete checkpoint. The MetaGraph of a sharded V1 checkpoint
// has a separate name.
func (c *candidate) orphans(all map[string]*candidate, name string) []Problem {
	for other, o := range all {
		if base, _, sharded := strings.Cut(other, layout.ShardMark); sharded && o.main && base == name {
			return nil
		}
	}
	var found []Problem
	for _, file := range c.Files {
		if strings.HasPrefix(file, c.Prefix+".") {
			found = append(found, Problem{ProblemOrphan, file, errors.New("its checkpoint has no index")})
		}
	}
	return found
}

// stateProblems returns what is wrong with the state file of a directory. A missing file is not a
// problem.
func stateProblems(dir string) []Problem {
	file := statePath(dir, "")
	s, err := ReadState(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []Problem{{ProblemState, file, err}}
	}
	paths := s.AllModelCheckpointPaths
	if !slices.Contains(paths, s.ModelCheckpointPath) {
		paths = append(paths, s.ModelCheckpointPath)
	}
	var found []Problem
	for _, p := range paths {
		if !layout.Exists(p) {
			err := fmt.Errorf("%s names it, but it does not exist", file)
			if p == s.ModelCheckpointPath {
				err = fmt.Errorf("%s names it as the current one, but it does not exist", file)
			}
			found = append(found, Problem{ProblemStale, p, err})
		}
	}
	return found
}
