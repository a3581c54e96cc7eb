package prove

import (
	"cmp"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/eventlog"
)

// Curve is a curve that differs between two runs.
type Curve struct {
	Tag string `json:"tag"` // after the name of its run, if there are several
	// First is the first step with a different value, -1 if all values are the
	// same.
	First  int64           `json:"first"`
	MaxAbs manifest.Metric `json:"max_abs,omitempty"`
	Differ int             `json:"differ,omitempty"` // how many steps have a different value
	// Missing and Extra are steps that one run does not have.
	Missing []int64 `json:"missing,omitempty"`
	Extra   []int64 `json:"extra,omitempty"`

	atFirst float64 // the distance at First, as a share of the value
}

// from returns the first step at which something differs.
func (c *Curve) from() int64 {
	first := int64(math.MaxInt64)
	if c.First >= 0 {
		first = c.First
	}
	for _, steps := range [][]int64{c.Missing, c.Extra} {
		if len(steps) > 0 {
			first = min(first, steps[0])
		}
	}
	return first
}

// ofTheClock are curves that depend on how fast a run is.
var ofTheClock = lazyregexp.New(`(?i)(?:^|[/_. -])(?:time|times|secs?|seconds|ms|dt|eta|mfu|fps|wall|clock|elapsed|runtime|speed|throughput|memory|mem|gpu|cpu|tok|tokens|samples|examples|steps?|it)(?:$|[/_. -])(?:.*(?:sec|/s|per|second|device)|$)|per_sec|/sec|_per_s|(?:^|[/_. -])(?:time|secs?|seconds|ms|dt|eta|mfu|fps|elapsed|runtime)(?:$|[/_. -])`)

// beginsWithOthers reports whether two runs differ from the first step on, by more than
// what they round.
func (c *Curve) beginsWithOthers(points map[int64]float64) bool {
	const rounded = 1e-3
	steps := sortedSteps(points)
	return len(steps) > 0 && c.First == steps[0] && c.atFirst > rounded
}

// curves are the values by step of each tag.
type curves map[string]map[int64]float64

// curvesIn returns the scalar curves of a logdir as TensorBoard is to show them. What the
// starts of a program write, each into a folder of its own, is one curve.
func curvesIn(logdir string) curves {
	all, begun := curves{}, map[string]float64{}
	root := tfevents.DirFS(logdir)
	runs, _ := tfevents.FindRuns(root, ".") // what cannot be read is missing in both
	for _, run := range runs {
		for _, s := range tfevents.ReadRun(root, run, nil).Series {
			if ofTheClock().MatchString(s.Tag) {
				continue
			}
			if points, first := pointsOf(s); len(points) > 0 {
				tag := path.Join(everyStart(run.Name), s.Tag)
				all[tag] = joined(all[tag], points, first >= begun[tag])
				begun[tag] = max(begun[tag], first)
			}
		}
	}
	return all
}

// pointsOf returns the numbers of a series, and when the first was written.
func pointsOf(s *tfevents.Series) (points map[int64]float64, first float64) {
	points = map[int64]float64{}
	for p := range s.Points() {
		if v, ok := p.Scalar(); ok {
			if len(points) == 0 {
				first = p.WallTime
			}
			points[p.Step] = v
		}
	}
	return points, first
}

// joined adds the points of one start to those of others. What a later start has repeated
// counts.
func joined(others, points map[int64]float64, later bool) map[int64]float64 {
	if others == nil {
		return points
	}
	if !later {
		others, points = points, others
	}
	maps.Copy(others, points)
	return others
}

// versionFolder are the folders that Lightning makes, one for each start.
var versionFolder = lazyregexp.New(`^version_\d+$`)

// everyStart returns the name of a run with * for folders that a program makes for each of
// its starts.
func everyStart(run string) string {
	parts := strings.Split(run, "/")
	for i, part := range parts {
		if found.NamesTime(part) || versionFolder().MatchString(part) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// extentOf returns the first and the last step of all curves, -1 without any.
func extentOf(all curves) (first, last int64) {
	first, last = -1, -1
	for _, points := range all {
		for step := range points {
			if first < 0 || step < first {
				first = step
			}
			last = max(last, step)
		}
	}
	return first, last
}

// diffCurves compares the curves of two runs.
func diffCurves(a, b curves) (differ []Curve) {
	tags := slices.Collect(maps.Keys(a))
	for tag := range b {
		if a[tag] == nil {
			tags = append(tags, tag)
		}
	}
	for _, tag := range tags {
		if c, same := diffCurve(a[tag], b[tag]); !same {
			c.Tag = tag
			differ = append(differ, c)
		}
	}
	slices.SortFunc(differ, func(a, b Curve) int { return cmp.Or(cmp.Compare(a.from(), b.from()), strings.Compare(a.Tag, b.Tag)) })
	return differ
}

func diffCurve(a, b map[int64]float64) (c Curve, same bool) {
	const few = 5 // of extra steps
	c.First, same = -1, true
	for _, step := range sortedSteps(a) {
		v := a[step]
		w, ok := b[step]
		switch {
		case !ok:
			same = false
			c.Missing = append(c.Missing, step)
		case v != w && !(math.IsNaN(v) && math.IsNaN(w)):
			same = false
			c.Differ++
			if c.First < 0 {
				c.First, c.atFirst = step, math.Abs(v-w)/max(math.Abs(v), math.SmallestNonzeroFloat64)
			}
			if d := manifest.Metric(math.Abs(v - w)); d > c.MaxAbs {
				c.MaxAbs = d
			}
		}
	}
	for _, step := range sortedSteps(b) {
		if _, ok := a[step]; !ok {
			same = false
			if len(c.Extra) < few {
				c.Extra = append(c.Extra, step)
			}
		}
	}
	return c, same
}

func sortedSteps(points map[int64]float64) []int64 { return slices.Sorted(maps.Keys(points)) }

// forgive takes out the points that a killed trainerd had not written yet: those up
// to the step at which it was killed. The training has lost nothing by that.
func (d *Difference) forgive(step int64) {
	for i := range d.Curves {
		c := &d.Curves[i]
		c.Missing = slices.DeleteFunc(c.Missing, func(s int64) bool { return step < 0 || s <= step })
	}
	d.Curves = slices.DeleteFunc(d.Curves, func(c Curve) bool { return c.First < 0 && len(c.Missing) == 0 && len(c.Extra) == 0 })
}

// forgiveSteps takes out the steps that only one of two runs has of a curve.
func (d *Difference) forgiveSteps(tag string) {
	for i := range d.Curves {
		if c := &d.Curves[i]; c.Tag == tag {
			c.Missing, c.Extra = nil, nil
		}
	}
	d.Curves = slices.DeleteFunc(d.Curves, func(c Curve) bool { return c.Tag == tag && c.First < 0 })
}

// restartsIn returns the first steps of each start of a program, by trainerd's own
// events.
func restartsIn(logdir string) (all []restart) {
	files := eventlog.OwnFiles(logdir)
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		given := int64(0)
		for e, err := range tfevents.NewReader(f).Events() {
			if err != nil {
				break
			}
			switch log := e.GetSessionLog(); log.GetStatus() {
			case tfpb.SessionLog_START:
				all = append(all, restart{given, e.GetStep()})
			case tfpb.SessionLog_CHECKPOINT:
				given = e.GetStep()
			}
		}
		f.Close()
	}
	return all
}
