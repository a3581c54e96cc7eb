package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Found says which checkpoints a directory has, in the order in which a
// restart tries them.
type Found struct {
	// State is the path of the `checkpoint` file, which need not exist.
	State string
	// StateErr says why the `checkpoint` file, if there is one, cannot be parsed. Then only the
	// steps of the files in the directory decide the order.
	StateErr error
	// Prefixes are the checkpoints to try, best first.
	Prefixes []string
	// Newer are checkpoints in the directory that are newer than the one that
	// `checkpoint` names. They are not tried: somebody may have edited
	// `checkpoint` to go back.
	Newer []string

	state   *tfpb.CheckpointState // nil without a readable `checkpoint` file
	orphans []string              // written by a run that was killed before it could list them
}

func (c *Found) IsEmpty() bool { return len(c.Prefixes) == 0 }

// Find looks for checkpoints in a directory, named basename-STEP.
//
// The first to try is the one that the `checkpoint` file names, so editing that file by hand chooses another
// one. Then come the older ones that the file lists, newest first, interleaved by step with unlisted ones in
// the directory whose step is smaller than the first one's. Without a readable `checkpoint` file, all those
// in the directory are tried from the highest step downwards.
//
// Whether a checkpoint exists and is intact is checked only when it is
// restored.
func Find(dir, latestFilename, basename string) (*Found, error) {
	return findCheckpoints(nil, dir, latestFilename, basename)
}

// Find looks for the checkpoints of the Saver in a directory.
func (s *Saver) Find(dir, basename string) (*Found, error) {
	return findCheckpoints(s.FS, dir, s.latestFilename(), basename)
}

func findCheckpoints(fsys ckptfmt.FS, dir, latestFilename, basename string) (*Found, error) {
	found := &Found{State: filepath.Join(dir, latestFilename)}
	state, err := ckptdir.ReadState(dir, &ckptdir.StateOptions{FS: fsys, Name: latestFilename})
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, ckptdir.ErrState), errors.Is(err, ckptdir.ErrEmptyState):
		found.StateErr = err
	case err != nil:
		return nil, err
	default:
		found.state = state
		basename = baseOf(state.GetModelCheckpointPath())
	}
	onDisk, err := scanCheckpoints(dir, basename)
	if err != nil {
		return nil, err
	}
	if found.state == nil {
		found.Prefixes = prefixesOf(onDisk)
		found.withPrevious()
		return found, nil
	}
	found.order(onDisk)
	return found, nil
}

// order puts the checkpoints that the state file names before the others in the directory.
func (c *Found) order(onDisk []scanned) {
	current := c.state.GetModelCheckpointPath()
	c.Prefixes = []string{current}
	listed := c.state.GetAllModelCheckpointPaths()
	taken := map[string]bool{current: true} // of what is listed
	for _, prefix := range slices.Backward(listed[:max(slices.Index(listed, current), 0)]) {
		if !taken[prefix] {
			taken[prefix] = true
			c.Prefixes = append(c.Prefixes, prefix)
		}
	}
	c.withPrevious()
	isListed, stateTime := setOf(listed), modTime(c.State)
	var unlisted []scanned
	for _, s := range onDisk {
		switch {
		case taken[s.prefix]:
		case s.step <= stepOf(current):
			unlisted = append(unlisted, s)
		default:
			c.Newer = append(c.Newer, s.prefix)
			if s.written.After(stateTime) && !isListed[s.prefix] {
				c.orphans = append(c.orphans, s.prefix)
			}
		}
	}
	c.merge(unlisted)
}

func setOf(prefixes []string) map[string]bool {
	set := make(map[string]bool, len(prefixes))
	for _, prefix := range prefixes {
		set[prefix] = true
	}
	return set
}

// merge inserts the checkpoints that the state file does not list, given by step, highest first,
// before the listed ones of smaller steps, but after the current one. The listed ones keep their
// order, which is by time: a Saver that keeps all checkpoints lists few.
func (c *Found) merge(unlisted []scanned) {
	merged, rest := c.Prefixes[:1:1], c.Prefixes[1:]
	for _, s := range unlisted {
		at := slices.IndexFunc(rest, func(prefix string) bool { return isBefore(prefix, s.step) })
		if at < 0 {
			at = len(rest)
		}
		merged = append(append(merged, rest[:at]...), s.prefix)
		rest = rest[at:]
	}
	c.Prefixes = append(merged, rest...)
}

// isBefore reports whether a checkpoint has a step, and a smaller one.
func isBefore(prefix string, step int64) bool {
	original, _ := cutPrevious(prefix)
	of := stepOf(original)
	return of != session.NoStep && of < step
}

// withPrevious inserts after each checkpoint the previous one under the same name, if a crash has
// left it.
func (c *Found) withPrevious() {
	var all []string
	for _, prefix := range c.Prefixes {
		all = append(all, prefix)
		if previous := previousName(prefix); layout.Exists(previous) {
			all = append(all, previous)
		}
	}
	c.Prefixes = all
}

// scanned is a checkpoint found in a directory.
type scanned struct {
	prefix  string
	step    int64
	written time.Time
}

// scanCheckpoints lists the checkpoints of one basename in a directory, highest
// step first, one without a step last. A directory that does not exist has
// none.
func scanCheckpoints(dir, basename string) ([]scanned, error) {
	list, err := ckptdir.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []scanned
	for _, c := range slices.Backward(list) {
		if baseOf(c.Prefix) == basename && missingShard(c.Prefix) == nil {
			all = append(all, scanned{c.Prefix, c.Step, c.Time})
		}
	}
	return all, nil
}

func prefixesOf(all []scanned) []string {
	var prefixes []string
	for _, s := range all {
		prefixes = append(prefixes, s.prefix)
	}
	return prefixes
}

func modTime(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
