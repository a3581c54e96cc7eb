package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Files and folders of a logdir, with the names that trainerd gives them.
const (
	pinSuffix  = ".pin"      // of the file that keeps a checkpoint
	bestName   = "best.json" // what is in the folder of the best
	damagedDir = "damaged"   // where damaged checkpoints are moved
)

// explain notes for the checkpoints of a directory, oldest first, their metrics,
// why each stays, and which the next save will remove. What cannot be read is
// returned, and leaves reasons out.
func explain(dir string, list []listed) error {
	stored := make([]retention.Checkpoint, len(list))
	var errs []error
	for i := range list {
		errs = append(errs, list[i].readMetrics())
		stored[i] = retention.Checkpoint{Prefix: list[i].Prefix, Step: list[i].Step, Saved: list[i].Time, Metrics: list[i].metrics, Sources: list[i].sources}
		if list[i].Latest {
			list[i].why = append(list[i].why, "current")
		}
		if list[i].isPinned() {
			list[i].why = append(list[i].why, "pinned")
		}
	}
	return errors.Join(append(errs, explainRules(dir, list, stored))...)
}

// explainRules says which rules keep the checkpoints of a directory.
func explainRules(dir string, list []listed, stored []retention.Checkpoint) error {
	if inDamaged(dir) {
		for i := range list {
			list[i].why = append(list[i].why, "moved aside as damaged")
		}
		return nil
	}
	if best, err := explainBest(dir, list); best || err != nil {
		return err
	}
	k, err := readKeeping(dir)
	state, _ := ckptdir.ReadState(dir, nil) // checkState says what is wrong with it
	switch {
	case k == nil && state != nil:
		explainListed(list, state)
	case k == nil:
	case k.keepsAll():
		for i := range list {
			list[i].why = append(list[i].why, "all are kept")
		}
	case k.byPolicies():
		explainPolicies(list, stored, k)
	case state != nil:
		explainRotation(list, state, k)
	}
	return err
}

// movedAside matches the folders of damaged checkpoints in damagedDir.
var movedAside = lazyregexp.New(`(^|/)` + damagedDir + `/[^/]+-[0-9]{8}T[0-9]{6}\.[0-9]{9}(/|$)`)

// inDamaged reports whether a directory is one that a damaged checkpoint was moved
// to, or below it.
func inDamaged(dir string) bool {
	abs, err := filepath.Abs(dir)
	return err == nil && movedAside().MatchString(filepath.ToSlash(abs))
}

// readMetrics notes the metrics of the model in a checkpoint, as its manifest or
// its record has them.
func (l *listed) readMetrics() error {
	m := new(manifest.Manifest)
	if l.record != nil {
		m = l.record.Manifest()
	} else if read, err := manifest.Read(l.Prefix); err == nil {
		m = read
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name := range m.Metrics {
		v, source, ok := m.Value(name)
		if !ok {
			continue
		}
		if l.metrics == nil {
			l.metrics, l.sources = make(map[string]float64), make(map[string]string)
		}
		l.metrics[name], l.sources[name] = float64(v), source
	}
	return nil
}

// names are the checkpoint's own, and those of its files and folders.
func (l *listed) names() []string {
	names := append([]string{l.Prefix}, l.Files...)
	if l.record != nil {
		for _, part := range l.record.Parts {
			names = append(names, filepath.Join(l.dir, filepath.FromSlash(part)))
		}
	}
	return names
}

// isPinned reports whether a file next to it keeps the checkpoint.
func (l *listed) isPinned() bool {
	names := l.names()
	if base, _, sharded := strings.Cut(l.Prefix, layout.ShardMark); sharded {
		names = append(names, base) // of a V1 checkpoint in several files
	}
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Lstat(name + pinSuffix)
		return err == nil
	})
}

// maxBest bounds what is read of the list of the best.
const maxBest = 64 << 20

// explainBest says how good the checkpoints of the folder of the best are, and
// whether the directory is one.
func explainBest(dir string, list []listed) (bool, error) {
	name := filepath.Join(dir, bestName)
	text, err := atomicfile.ReadFileLimit(nil, name, maxBest, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var best struct {
		Metric      string
		Checkpoints []struct {
			Name  string `json:"checkpoint"`
			Value float64
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &best)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	for i := range list {
		for rank, c := range best.Checkpoints {
			if filepath.Base(list[i].Prefix) == filepath.Base(c.Name) {
				list[i].why = append(list[i].why, fmt.Sprintf("best %s, place %d: %.6g", best.Metric, rank+1, c.Value))
			}
		}
	}
	return true, nil
}

// explainListed says which checkpoints of a program without a config of ours are
// listed in the file `checkpoint`: those that its Saver may remove some time.
func explainListed(list []listed, state *tfpb.CheckpointState) {
	for i := range list {
		if placeOf(list[i].Prefix, state) >= 0 {
			list[i].why = append(list[i].why, "listed")
		} else if list[i].record == nil {
			list[i].why = append(list[i].why, "not listed")
		}
	}
}

// placeOf returns where the file `checkpoint` of its directory lists a checkpoint,
// -1 for nowhere. The directory may have been moved since.
func placeOf(prefix string, state *tfpb.CheckpointState) int {
	return slices.IndexFunc(state.GetAllModelCheckpointPaths(), func(name string) bool { return filepath.Base(name) == filepath.Base(prefix) })
}

// explainPolicies is for runs where policies decide. What the next save removes is
// what they leave out if there is a newer one.
func explainPolicies(list []listed, stored []retention.Checkpoint, k *keeping) {
	at := make([]int, 0, len(list)) // those that are rotated
	var rotated []retention.Checkpoint
	for i := range list {
		if why := list[i].isNamed(); why != "" {
			list[i].why = append(list[i].why, why)
			continue
		}
		at, rotated = append(at, i), append(rotated, stored[i])
	}
	for i, why := range retention.Reasons(k.policies(), rotated) {
		list[at[i]].why = append(list[at[i]].why, why...)
	}
	next := retention.Checkpoint{Step: math.MaxInt64, Saved: time.Now()}
	for i, why := range retention.Reasons(k.policies(), append(rotated, next))[:len(rotated)] {
		list[at[i]].goes = len(why) == 0 && !list[at[i]].isPinned()
	}
}

// isNamed returns why a checkpoint is not rotated, whatever the policies say, by its name; "" if it is.
func (l *listed) isNamed() string {
	switch {
	case l.Step >= 0 || l.record != nil && l.record.Numbers == manifest.NumbersBegin:
		return ""
	case l.record != nil && l.record.Numbers == manifest.NumbersTurn:
		return "its name is used in turn"
	}
	return "its name has no step"
}

// explainRotation is for runs of TensorFlow's rule: the file `checkpoint` lists the
// newest, and what falls out of the list is removed, or kept permanently.
func explainRotation(list []listed, state *tfpb.CheckpointState, k *keeping) {
	names := state.GetAllModelCheckpointPaths()
	preserved := time.UnixMicro(int64(state.GetLastPreservedTimestamp() * 1e6))
	for i := range list {
		l := &list[i]
		place := placeOf(l.Prefix, state)
		switch {
		case place < 0 && k.every() > 0 && k.everySet:
			l.why = append(l.why, fmt.Sprintf("one every %v", k.every()))
		case place < 0:
			l.why = append(l.why, "not listed")
		default:
			if len(names)-place <= k.Supervisor.MaxToKeep { // a pin may have kept it in the list
				l.why = append(l.why, fmt.Sprintf("among the last %d", k.Supervisor.MaxToKeep))
			}
			l.goes = len(names)-place >= k.Supervisor.MaxToKeep && !l.isPinned() &&
				(k.every() <= 0 || !l.Time.After(preserved.Add(k.every())))
		}
	}
}
