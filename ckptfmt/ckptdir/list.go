package ckptdir

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Checkpoint is a checkpoint found in a directory.
type Checkpoint struct {
	// Prefix is the directory joined with the checkpoint's name, as [ckptfmt.Open]
	// takes it. For a sharded V1 checkpoint it is a pattern.
	Prefix string
	// Step is the number after the last dash of the name, or -1.
	Step int64
	// Time is when it was saved: according to the state file, or else its
	// manifest, or else when the index, or a V1 checkpoint's file, was last
	// written.
	Time time.Time
	// Files are the names of all files that belong to the checkpoint; the
	// first is the one that makes it a checkpoint. Bytes is their total size.
	Files []string
	Bytes int64
	// Latest says that the directory's state file names this checkpoint.
	Latest bool
}

// V2 reports whether it is a bundle, which has an index.
func (c *Checkpoint) V2() bool { return strings.HasSuffix(c.Files[0], layout.IndexSuffix) }

// published returns the files in the order in which they are published; they
// are removed in the reverse order.
func (c *Checkpoint) published() []string {
	files := slices.Clone(c.Files)
	slices.Reverse(files) // of a V1 checkpoint the first comes last
	if c.V2() {
		rank := func(file string) int { return layout.PublishRank(strings.TrimPrefix(file, c.Prefix)) }
		slices.SortStableFunc(files, func(a, b string) int { return rank(a) - rank(b) })
	}
	return files
}

// eventsMark is in the name of every events file. A logdir may have thousands of
// them, and none is opened to find out that it is not a V1 checkpoint.
const eventsMark = ".tfevents."

var v2FilePattern = lazyregexp.New(`^(.+)(?:\.index|\.meta|\.manifest\.json|\.data-[0-9]{5,}-of-[0-9]{5,})$`)

// checkpointName returns the name of the checkpoint that a file belongs to,
// and whether the file is the one that makes it a checkpoint.
func checkpointName(dir, file string) (name string, main bool) {
	if m := v2FilePattern().FindStringSubmatch(file); m != nil {
		return m[1], strings.HasSuffix(file, layout.IndexSuffix)
	}
	if layout.IsTemp(file) || !layout.IsTable(filepath.Join(dir, file)) {
		return "", false
	}
	if m := layout.V1Shard.FindStringSubmatch(file); m != nil {
		return m[1] + "?????" + m[2], true // a pattern
	}
	return file, true
}

// List returns the checkpoints in a directory, ordered by step, then by time.
// Files of a V2 checkpoint that has no index are not part of any.
func List(dir string) ([]Checkpoint, error) { return listOnly(dir, "") }

// Find returns the checkpoint with that prefix, as [ckptfmt.Open] takes it. If there is none, the error
// matches [fs.ErrNotExist].
func Find(prefix string) (Checkpoint, error) {
	found, err := listOnly(filepath.Dir(prefix), filepath.Base(prefix))
	switch {
	case err != nil:
		return Checkpoint{}, err
	case len(found) > 0:
		return found[0], nil
	}
	// a sharded V1 checkpoint without the pattern of its shards?
	if pattern, err := layout.FindV1(prefix); err == nil {
		return Find(pattern)
	}
	return Checkpoint{}, &fs.PathError{Op: "find checkpoint", Path: prefix, Err: fs.ErrNotExist}
}

// listOnly is List, or where only is not "", what List has of that name: no other file is
// looked at, for there may be many.
func listOnly(dir, only string) ([]Checkpoint, error) {
	stem, _, _ := strings.Cut(only, layout.ShardMark)
	found, err := scan(dir, stem)
	if err != nil {
		return nil, err
	}
	latest, saved := stateNames(dir)
	var list []Checkpoint
	for name, c := range found {
		if !c.main || only != "" && name != only {
			continue
		}
		// The MetaGraph of a sharded V1 checkpoint has no shard in its name.
		base, _, sharded := strings.Cut(name, layout.ShardMark)
		if rest := found[base]; sharded && rest != nil && !rest.main {
			c.Files = append(c.Files, rest.Files...)
			c.Bytes += rest.Bytes
		}
		c.Latest = name == latest
		c.setTime(saved[name])
		list = append(list, c.Checkpoint)
	}
	sortByAge(list)
	return list, nil
}

// sortByAge orders checkpoints by step and time. One that is being overwritten comes
// right before the one that replaces it, whatever their times are.
func sortByAge(list []Checkpoint) {
	times := make(map[string]time.Time, len(list))
	for _, c := range list {
		times[c.Prefix] = c.Time
	}
	successor := func(c Checkpoint) (prefix string, at time.Time, itself bool) {
		prefix, overwritten := strings.CutSuffix(c.Prefix, layout.PreviousSuffix)
		if at, found := times[prefix]; overwritten && found {
			return prefix, at, false
		}
		return c.Prefix, c.Time, true
	}
	slices.SortFunc(list, func(a, b Checkpoint) int {
		aName, aTime, aItself := successor(a)
		bName, bTime, bItself := successor(b)
		order := cmp.Or(cmp.Compare(a.Step, b.Step), aTime.Compare(bTime), cmp.Compare(aName, bName))
		switch {
		case order != 0 || aItself == bItself:
			return order
		case aItself:
			return 1
		}
		return -1
	})
}

// candidate is what may turn out to be a checkpoint.
type candidate struct {
	Checkpoint
	main bool // it has the file that makes it a checkpoint
}

// scan sorts the files of a directory whose names begin with stem by the checkpoints that
// they belong to.
func scan(dir, stem string) (map[string]*candidate, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*candidate)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stem) || strings.Contains(e.Name(), eventsMark) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, err
		}
		var name string
		var main bool
		if info.Mode().IsRegular() {
			name, main = checkpointName(dir, e.Name())
		}
		if name == "" {
			continue
		}
		if found[name] == nil {
			found[name] = &candidate{Checkpoint: Checkpoint{Prefix: filepath.Join(dir, name), Step: StepOf(name)}}
		}
		found[name].add(filepath.Join(dir, e.Name()), info, main)
	}
	return found, nil
}

func (c *candidate) add(file string, info fs.FileInfo, main bool) {
	c.Files = append(c.Files, file)
	c.Bytes += info.Size()
	if !main {
		return
	}
	last := len(c.Files) - 1
	c.Files[0], c.Files[last] = c.Files[last], c.Files[0]
	c.Time = info.ModTime()
	c.main = true
}

// setTime sets when the checkpoint was saved; a zero stamp means that the state file does not say.
// The file system's time changes with every copy.
func (c *candidate) setTime(stamp time.Time) {
	if stamp.IsZero() && slices.Contains(c.Files, manifest.Name(c.Prefix)) {
		if m, err := manifest.Read(c.Prefix); err == nil {
			stamp = m.WallTime
		}
	}
	if !stamp.IsZero() {
		c.Time = stamp
	}
}

// stateNames returns the name, relative to dir, of the current checkpoint, or
// "", and when checkpoints were saved, by their names.
func stateNames(dir string) (latest string, saved map[string]time.Time) {
	s, err := ReadState(dir, nil)
	if err != nil {
		return "", nil
	}
	nameOf := func(path string) string {
		rel, _ := storedPath(dir, path, true) // "" if there is no working directory
		return rel
	}
	saved = make(map[string]time.Time)
	if len(s.AllModelCheckpointTimestamps) == len(s.AllModelCheckpointPaths) {
		for i, stamp := range s.AllModelCheckpointTimestamps {
			if t, ok := timeOf(stamp); ok {
				saved[nameOf(s.AllModelCheckpointPaths[i])] = t
			}
		}
	}
	return nameOf(s.ModelCheckpointPath), saved
}

// timeOf returns the time of a timestamp of the state file, in seconds; false
// when it is not one: 0 means unknown.
func timeOf(stamp float64) (time.Time, bool) {
	if !(stamp > 0 && stamp < 1<<40) {
		return time.Time{}, false
	}
	whole, part := math.Modf(stamp)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

// stepPattern matches the step in a checkpoint's name.
var stepPattern = lazyregexp.New(`-([0-9]+)$`)

// StepOf returns the number after the last dash of a checkpoint's name, or -1
// if there is none. A checkpoint that is being overwritten has the step of its
// name.
func StepOf(prefix string) int64 {
	name, _, _ := strings.Cut(filepath.Base(prefix), layout.ShardMark)
	m := stepPattern().FindStringSubmatch(strings.TrimSuffix(name, layout.PreviousSuffix))
	if m == nil {
		return -1
	}
	step, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return -1
	}
	return step
}
