package prove

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/tfevents"
)

// savesFirst reports whether the training writes the checkpoint with the number of a
// step before it does that step, as nanoGPT does. Then the report of the step comes as
// long after the checkpoint as a step takes, and not about at the same time.
func (o *outcome) savesFirst(pattern string) bool {
	said := o.reportTimes()
	pace := secondsPerStep(said)
	first, all := 0, 0
	for _, name := range statesIn(o.logdir, pattern) {
		at, reported := said[stepOf(pattern, name)]
		info, err := os.Stat(filepath.Join(o.logdir, name))
		if !reported || err != nil {
			continue
		}
		all++
		if at-float64(info.ModTime().UnixNano())/1e9 > pace/2 {
			first++
		}
	}
	return pace > 0 && 2*first > all
}

// reportTimes returns when each step was reported last, in seconds since 1970: by the
// training, and not by an evaluation.
func (o *outcome) reportTimes() map[int64]float64 {
	said := map[int64]float64{}
	root := tfevents.DirFS(o.logdir)
	runs, _ := tfevents.FindRuns(root, ".") // what cannot be read says nothing
	for _, run := range runs {
		for _, s := range tfevents.ReadRun(root, run, nil).Series {
			if evaluates().MatchString(s.Tag) || ofTheClock().MatchString(s.Tag) {
				continue
			}
			for p := range s.Points() {
				said[p.Step] = max(said[p.Step], p.WallTime)
			}
		}
	}
	return said
}

// secondsPerStep returns how long a step takes, usually.
func secondsPerStep(said map[int64]float64) float64 {
	steps := slices.Sorted(maps.Keys(said))
	var paces []float64
	for i, step := range steps[min(1, len(steps)):] {
		paces = append(paces, (said[step]-said[steps[i]])/float64(step-steps[i]))
	}
	if len(paces) == 0 {
		return 0
	}
	slices.Sort(paces)
	return paces[len(paces)/2]
}
