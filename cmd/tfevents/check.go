package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/garbage"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "explain what TensorBoard will not show, or not as it was meant",
		ArgsUsage: "PATH...",
		Description: "TensorBoard has two loaders: the data server, which most users have, and the one in\n" +
			"Python (--load_fast=false). Where they differ from each other or from what the files\n" +
			"hold, check says how and why, and ends with 4, or with 3 if a file is damaged.",
		Flags: []cli.Flag{
			jsonFlag(),
			runFlag(),
			&cli.BoolFlag{Name: "for-tensorboard", Usage: "what check does anyway; see also stat --for-tensorboard", Hidden: true},
		},
		Action: check,
	}
}

// finding is one thing that TensorBoard does not show as it was meant.
type finding struct {
	Run     string `json:"run"`
	File    string `json:"file,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Damage  bool   `json:"damage"`
	Problem string `json:"problem"`
	Note    bool   `json:"note,omitempty"` // TensorBoard shows what there is: nothing yet
}

// where is the place of the finding in words.
func (f finding) where() string {
	where := shown(f.Run)
	if f.File != "" {
		where = shown(f.File)
	}
	if f.Tag != "" {
		where += fmt.Sprintf(": tag %q", f.Tag)
	}
	return where
}

func check(c *cli.Context) error {
	garbage.CollectSeldom()
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	if err := notStdin(c, args); err != nil {
		return err
	}
	misnamed, err := findMisnamed(c, args)
	if err != nil {
		return err
	}
	s, err := openSource(c, args...)
	if err != nil && !(errors.Is(err, errNothing) && len(misnamed) > 0) {
		return err
	}
	k := &checker{source: s, findings: misnamed}
	if s != nil {
		if err := k.checkRuns(); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		err = printJSON(c.App.Writer, k.findings)
	} else {
		err = printFindings(c, k.findings)
	}
	if err != nil {
		return err
	}
	return k.result()
}

func printFindings(c *cli.Context, findings []finding) error {
	style := screenOf(c).style
	for _, f := range findings {
		where := style.Warn(f.where())
		if f.Damage {
			where = style.Bad(f.where())
		}
		if _, err := fmt.Fprintf(c.App.Writer, "%s: %s\n", where, terminal.Line(f.Problem)); err != nil {
			return err
		}
	}
	return nil
}

// checker collects findings.
type checker struct {
	source   *source
	findings []finding
}

func (k *checker) result() error {
	for _, f := range k.findings {
		if f.Damage {
			return errDamaged
		}
	}
	if slices.ContainsFunc(k.findings, func(f finding) bool { return !f.Note }) {
		return errDiffers
	}
	return nil
}

func (k *checker) checkRuns() error {
	k.source.expect() // a second time
	found, err := eachRun(k.source.ctx, k.source.runs, func(run tfevents.Run) ([]finding, error) {
		one := runChecker{source: k.source}
		err := one.checkRun(run)
		return one.findings, err
	})
	k.findings = append(k.findings, slices.Concat(found...)...)
	return err
}

// runChecker collects the findings of one run.
type runChecker struct {
	source     *source
	everyValue bool // look at plain scalars too, and always read as both loaders do
	findings   []finding
}

func (k *runChecker) checkRun(run tfevents.Run) error {
	var files []*fileTimes
	for _, name := range run.Files {
		times, err := k.checkFile(run, name)
		if err != nil {
			return err
		}
		files = append(files, times)
	}
	k.checkOrder(run, files)
	meant, err := k.read(run, tfevents.PurgeExact)
	if err != nil {
		return err
	}
	python, server := meant, meant
	if !meant.loadersAgree(files) {
		k.source.expectRun(run, 2)
		if python, err = k.read(run, tfevents.PurgePython); err != nil {
			return err
		}
		if server, err = k.read(run, tfevents.PurgeDataServer); err != nil {
			return err
		}
	}
	for _, s := range meant.series {
		problem, err := s.problem(python.byTag[s.tag], server.byTag[s.tag], meant.damaged, purgeHint(files))
		if err != nil {
			return err
		}
		if problem != "" {
			k.findings = append(k.findings, finding{Run: run.Name, Tag: s.tag, Problem: problem})
		}
	}
	if len(meant.series) == 0 && !hasPluginFiles(run) {
		k.findings = append(k.findings, finding{Run: run.Name, Note: true, Problem: "holds nothing to show"})
	}
	return nil
}

// hasPluginFiles reports whether a run has files that a page shows without any events:
// profiles, or embeddings.
func hasPluginFiles(run tfevents.Run) bool {
	for _, name := range run.Files {
		dir := filepath.Dir(name)
		profiles, _ := os.ReadDir(filepath.Join(dir, "plugins"))
		_, err := os.Stat(filepath.Join(dir, "projector_config.pbtxt"))
		if len(profiles) > 0 || err == nil {
			return true
		}
	}
	return false
}

// damageProblem says what the loaders make of damage.
func damageProblem(err error) string {
	var damage *tfrecord.CorruptError
	if !errors.As(err, &damage) {
		return err.Error()
	}
	where := fmt.Sprintf("offset %d: ", damage.Offset)
	switch {
	case damage.Torn():
		return where + "the last record is not complete: both loaders wait for the rest; if its writer is gone, repair the file"
	case damage.Part == tfrecord.PartLength:
		return where + "damaged length: both loaders see nothing of this file from here on; repair the file"
	}
	return where + "damaged data: the Python loader sees nothing of this file from here on, the data server shows what it makes of it; repair the file"
}

// stepProblem says what is odd about the steps of a series. It looks at them once.
func stepProblem(s *checkedSeries) string {
	if !s.stepped {
		s.stepped, s.steps = true, oddSteps(s)
	}
	return s.steps
}

func oddSteps(s *checkedSeries) string {
	back, negative, same := 0, 0, 0
	begun := false
	var first, before int64
	for p := range s.stamps {
		if p.step < 0 {
			negative++
		}
		switch {
		case !begun:
			first, begun = p.step, true
		case p.step < before:
			back++
		case p.step == before:
			same++
		}
		before = p.step
	}
	const goBack = "its steps go back %s without a restart: the Python loader draws a zigzag, the data server drops what it goes back over"
	switch n := s.points; {
	case negative > 0 && back > 0:
		return fmt.Sprintf("%d of %d points have a negative step; "+goBack, negative, n, times(back))
	case negative > 0:
		return fmt.Sprintf("%d of %d points have a negative step", negative, n)
	case n > 2 && same == n-1:
		return fmt.Sprintf("all %d points have step %d: the data server shows the last of them only; count steps", n, first)
	case back > 0:
		return fmt.Sprintf(goBack, times(back))
	case same > 0:
		return fmt.Sprintf("%s the step of the point before: the data server shows the last of each step only", has(same))
	}
	return ""
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func has(n int) string {
	if n == 1 {
		return "1 point has"
	}
	return fmt.Sprintf("%d points have", n)
}

// purgeProblem says how the loaders differ from what a resumed training meant.
func purgeProblem(meant, python, server *checkedSeries, hint string) string {
	var parts []string
	if d := difference(meant, python); d != "" {
		parts = append(parts, "the Python loader "+d)
	}
	if d := difference(meant, server); d != "" {
		parts = append(parts, "the data server "+d)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; " + hint
}

// purgeHint says what helps where a loader drops points of a run, or keeps overtaken ones.
func purgeHint(files []*fileTimes) string {
	if slices.ContainsFunc(files, func(f *fileTimes) bool { return f.untimed }) {
		return "a merge does not give times to the events that have none"
	}
	return "merge the run's files"
}

// difference compares the points of a series with those that a loader keeps.
func difference(meant, shown *checkedSeries) string {
	if shown == meant || shown != nil && sameStamps(meant, shown) {
		return ""
	}
	want := make(map[stampBits]int)
	for p := range meant.stamps {
		want[p.bits()]++
	}
	extra, missing := 0, meant.points
	if shown != nil {
		for p := range shown.stamps {
			if want[p.bits()] > 0 {
				want[p.bits()]--
				missing--
			} else {
				extra++
			}
		}
	}
	switch {
	case extra > 0 && missing > 0:
		return fmt.Sprintf("shows %s and lacks %d", overtaken(extra), missing)
	case extra > 0:
		return "shows " + overtaken(extra)
	case missing > 0:
		return "lacks " + points(missing)
	}
	return ""
}

func overtaken(n int) string {
	if n == 1 {
		return "1 point that was overtaken"
	}
	return fmt.Sprintf("%d points that were overtaken", n)
}

func points(n int) string {
	if n == 1 {
		return "1 point"
	}
	return fmt.Sprintf("%d points", n)
}

// shownPoints is how many points of a tag the loaders show by default: a random
// choice of them, and always the last.
var shownPoints = map[string]struct{ python, server int }{
	summary.PluginScalars:    {1000, 1000},
	summary.PluginHistograms: {500, 100},
	summary.PluginImages:     {10, 10},
	summary.PluginAudio:      {10, 10},
	summary.PluginText:       {10, 100},
	summary.PluginPRCurves:   {100, 100},
	summary.PluginMesh:       {10, 100},
}

func sampleProblem(s *checkedSeries) string {
	limit, known := shownPoints[s.plugin()]
	n := s.points
	if !known || n <= min(limit.python, limit.server) {
		return ""
	}
	shown := fmt.Sprintf("%d of %d points are shown", limit.server, n)
	switch {
	case n <= limit.server:
		shown = fmt.Sprintf("%d of %d points are shown by the Python loader", limit.python, n)
	case limit.python != limit.server && n > limit.python:
		shown += fmt.Sprintf(" (%d by the Python loader)", limit.python)
	case limit.python != limit.server:
		shown += " (all by the Python loader)"
	}
	return fmt.Sprintf("%s, a random choice; --samples_per_plugin=%s=%d shows all", shown, s.plugin(), n)
}
