package prove

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// counts are names of numbers in checkpoints that each update of the weights raises
// by one.
var counts = lazyregexp.New(`(?i)(?:^|[/_.])(?:step|steps|iteration|iterations|iter|count|t|last_epoch|num_batches_tracked)$`)

// byCounters uses the counters in a checkpoint, which need no reports: one that differs by one has
// counted a step twice, or not at all; if the optimizer's counter differs by more, it has begun
// again.
func (e *evidence) byCounters() []Cause {
	if e.seen[partScaler] != "" && e.early(partScaler) {
		return nil // a loss that was scaled too high leaves out an update
	}
	for _, t := range e.Difference.Tensors {
		p := t.part()
		if t.Step != e.Difference.Tensors[0].Step {
			break // the later ones follow
		}
		if !counts().MatchString(t.Name) || p != partOptimizer && p != partNorm {
			continue
		}
		where := fmt.Sprintf("%s of %s: %s", t.Name, t.File, t.Reason)
		switch {
		case t.MaxAbs == 1:
			return []Cause{{partStep.name, "the optimizer has done an update more, or less: " + where}}
		case t.MaxAbs > 1 && p == partOptimizer:
			return []Cause{{partOptimizer.name, "it counts its updates from another number: " + where}}
		}
	}
	return nil
}

// older finds a state that is of an earlier step than the checkpoint that the program was
// given, as of the best one: all that counts in it lags behind by as much.
func (e *evidence) older() []Cause {
	if e.Disturbance == nil || len(e.Difference.Tensors) == 0 {
		return nil
	}
	counters, lag, where := 0, manifest.Metric(0), ""
	for _, t := range e.Difference.Tensors {
		if t.Step != e.Difference.Tensors[0].Step {
			break // the later ones follow
		}
		if p := t.part(); !counts().MatchString(t.Name) || p != partOptimizer && p != partSchedule {
			continue
		}
		if counters > 0 && t.MaxAbs != lag {
			return nil
		}
		counters, lag, where = counters+1, t.MaxAbs, fmt.Sprintf("%s of %s: %s", t.Name, t.File, t.Reason)
	}
	if counters < 2 || lag <= 1 || int64(lag) >= e.Disturbance.Resumed || e.seen[partWeights] == "" {
		return nil
	}
	return []Cause{{partBest.name, fmt.Sprintf("after the checkpoint of step %d it continues with the state of step %d, as if it had loaded another one, such as the best: %s",
		e.Disturbance.Resumed, e.Disturbance.Resumed-int64(lag), where)}}
}

// restoredCounter reports whether the optimizer counts its updates in the checkpoints,
// and counts the same: then it was restored.
func (e *evidence) restoredCounter() bool {
	return e.restored(func(t *Tensor) bool { return counts().MatchString(t.Name) && t.part() == partOptimizer })
}

// hasRestored reports whether the checkpoints have something of a part that is the same.
func (e *evidence) hasRestored(p *part) bool {
	return e.restored(func(t *Tensor) bool { return t.part() == p })
}

// restored reports whether the first checkpoint that differs has a tensor of a kind that
// does not.
func (e *evidence) restored(kind func(*Tensor) bool) bool {
	if len(e.Difference.Tensors) == 0 {
		return false
	}
	for _, file := range e.besides(&e.Difference.Tensors[0]) {
		for _, name := range tensorNames(filepath.Join(e.reference.logdir, file)) {
			if kind(&Tensor{File: file, Name: name}) && !e.differs(file, name) {
				return true
			}
		}
	}
	return false
}

// besides returns the file of a tensor, and those of the same checkpoint: of the same
// step, or in one folder with it.
func (e *evidence) besides(t *Tensor) []string {
	files, dir := []string{t.File}, path.Dir(t.File)
	for _, name := range statesIn(e.reference.logdir, e.pattern) {
		if name != t.File && t.Step >= 0 && stepOf(e.pattern, name) == t.Step {
			files = append(files, name)
		}
	}
	if !numbers().MatchString(path.Base(dir)) {
		return files // it has those of other steps, too
	}
	entries, err := os.ReadDir(filepath.Join(e.reference.logdir, dir))
	if err != nil {
		return files
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if !slices.Contains(files, name) && (holdsState().MatchString(name) || pickle().MatchString(name)) && !notState().MatchString(entry.Name()) {
			files = append(files, name)
		}
	}
	return files
}

// differs reports whether a tensor of a file is among those that differ.
func (e *evidence) differs(file, name string) bool {
	for _, t := range e.Difference.Tensors {
		if t.File == file && t.Name == name {
			return true
		}
	}
	return false
}

// tensorNames returns the names of the tensors in a file of a format that is known, or of
// the values in a file of JSON.
func tensorNames(file string) (names []string) {
	if text, err := os.ReadFile(file); err == nil && path.Ext(file) == ".json" {
		return slices.Collect(maps.Keys(leavesOfJSON(text)))
	}
	f, err := openState(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	for info, err := range f.Tensors() {
		if err == nil {
			names = append(names, info.Name)
		}
	}
	return names
}
