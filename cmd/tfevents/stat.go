package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/garbage"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

func statCommand() *cli.Command {
	return &cli.Command{
		Name:      "stat",
		Usage:     "show a digest of runs: files, sessions, tags, steps, extremes",
		ArgsUsage: "PATH...",
		Description: "Counts everything that the files hold, also what a resumed training wrote again. BACK\n" +
			"is how often the step went back.",
		Flags: []cli.Flag{
			jsonFlag(),
			runFlag(),
			tagFlag(),
			&cli.BoolFlag{Name: "for-tensorboard", Usage: "explain what TensorBoard will not show, as check does"},
		},
		Action: stat,
	}
}

// runStat is a run as stat --json prints it.
type runStat struct {
	Run         string         `json:"run"`
	Files       []fileStat     `json:"files"`
	Bytes       int64          `json:"bytes"`
	Events      int            `json:"events"`
	Kinds       map[string]int `json:"kinds"` // events
	FirstTime   number         `json:"first_wall_time"`
	LastTime    number         `json:"last_wall_time"`
	Starts      int            `json:"session_starts"`
	Stops       int            `json:"session_stops"`
	Checkpoints int            `json:"session_checkpoints"`
	Tags        []*tagStat     `json:"tags"`
	Findings    []finding      `json:"findings,omitempty"` // with --for-tensorboard

	timed  bool
	damage []error
}

// fileStat is a file as stat --json prints it.
type fileStat struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Events  int    `json:"events"`
	Version string `json:"version,omitempty"`
	Writer  string `json:"writer,omitempty"`
	Damage  int    `json:"damaged_places"`
}

// tagStat is a tag as stat --json prints it.
type tagStat struct {
	Tag       string  `json:"tag"`
	Plugin    string  `json:"plugin"`
	Points    int     `json:"points"`
	Bytes     int64   `json:"bytes"`
	FirstStep int64   `json:"first_step"`
	LastStep  int64   `json:"last_step"`
	MinStep   int64   `json:"min_step"`
	MaxStep   int64   `json:"max_step"`
	Back      int     `json:"steps_back"`
	Scalar    *values `json:"scalar,omitempty"`
}

// values is what stat says of scalars. The mean and the extremes are those of
// the finite ones.
type values struct {
	Last      number `json:"last"`
	Min       number `json:"min"`
	Max       number `json:"max"`
	Mean      number `json:"mean"`
	NonFinite int    `json:"non_finite"`

	sum   float64
	count int
}

func stat(c *cli.Context) error {
	garbage.CollectSeldom()
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	tags, err := selected(c, "tag")
	if err != nil {
		return err
	}
	if c.Bool("for-tensorboard") {
		if err := notStdin(c, args); err != nil {
			return err
		}
	}
	s, err := openSource(c, args...)
	if err != nil {
		return err
	}
	s.holds = true
	report := newReporter(c)
	stats := []*runStat{}
	read, err := eachRun(s.ctx, s.runs, func(run tfevents.Run) (*runStat, error) { return statRun(s, run, tags) })
	for _, r := range read {
		if r != nil {
			report.all(r.damage)
			stats = append(stats, r)
		}
	}
	if err != nil {
		return err
	}
	var verdict error
	if c.Bool("for-tensorboard") {
		verdict, err = addFindings(c, s, args, stats)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = printJSON(c.App.Writer, stats)
	} else {
		err = printStats(c, stats)
	}
	return cmp.Or(err, report.result(), verdict)
}

// statRun reads the files twice: their events, whose heads alone count here,
// and the curves.
func statRun(s *source, run tfevents.Run, tags *regexp.Regexp) (*runStat, error) {
	r := &runStat{Run: run.Name, Kinds: make(map[string]int), Tags: []*tagStat{}}
	for _, path := range run.Files {
		f, err := r.addFile(s, path)
		if err != nil {
			return r, err
		}
		r.Files = append(r.Files, *f)
		r.Bytes += f.Bytes
	}
	s.expectRun(run, 1)
	d := tfevents.ReadRun(s, run, &tfevents.RunOptions{Purge: tfevents.KeepAll, MaxSize: maxRecord})
	for _, series := range d.Series {
		if tags.MatchString(series.Tag) {
			r.Tags = append(r.Tags, statSeries(d, series))
		}
	}
	return r, s.ctx.Err()
}

func (r *runStat) addFile(s *source, path string) (*fileStat, error) {
	f := &fileStat{File: path}
	if info, err := os.Stat(path); err == nil {
		f.Bytes = info.Size()
	}
	damaged := func(err error) {
		f.Damage++
		r.damage = append(r.damage, err)
	}
	var heads tfevents.HeadScanner
	_, err := s.eachRecord(path, func(offset int64, data []byte) error {
		head, err := heads.Scan(data)
		if err != nil {
			damaged(noEvent(path, offset, data, err))
			return nil
		}
		f.add(head)
		r.add(head)
		return nil
	}, damaged)
	return f, err
}

func (f *fileStat) add(e tfevents.EventHead) {
	f.Events++
	if e.Version != "" && f.Version == "" {
		f.Version, f.Writer = e.Version, e.Writer
	}
}

func (r *runStat) add(e tfevents.EventHead) {
	r.Events++
	r.Kinds[e.Kind]++
	if wall := e.WallTime; wall > 0 && wall < endOfTime {
		if !r.timed {
			r.FirstTime, r.LastTime, r.timed = number(wall), number(wall), true
		}
		r.FirstTime, r.LastTime = min(r.FirstTime, number(wall)), max(r.LastTime, number(wall))
	}
	switch e.Session {
	case tfpb.SessionLog_START:
		r.Starts++
	case tfpb.SessionLog_STOP:
		r.Stops++
	case tfpb.SessionLog_CHECKPOINT:
		r.Checkpoints++
	}
}

func statSeries(d *tfevents.RunData, series *tfevents.Series) *tagStat {
	t := &tagStat{Tag: series.Tag, Plugin: series.Plugin(), Bytes: series.Bytes()}
	for step := range series.Times() {
		if t.Points == 0 {
			t.FirstStep, t.LastStep, t.MinStep, t.MaxStep = step, step, step, step
		}
		if step < t.LastStep {
			t.Back++
		}
		t.Points++
		t.LastStep = step
		t.MinStep, t.MaxStep = min(t.MinStep, step), max(t.MaxStep, step)
	}
	if t.Plugin != summary.PluginScalars {
		return t
	}
	for _, x := range d.Scalars(series) {
		if t.Scalar == nil {
			t.Scalar = &values{Min: number(math.NaN()), Max: number(math.NaN()), Mean: number(math.NaN())}
		}
		t.Scalar.add(x)
	}
	return t
}

func (v *values) add(x float64) {
	v.Last = number(x)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		v.NonFinite++
		return
	}
	if v.count == 0 {
		v.Min, v.Max = number(x), number(x)
	}
	v.Min, v.Max = min(v.Min, number(x)), max(v.Max, number(x))
	v.count++
	v.sum += x
	v.Mean = number(v.sum / float64(v.count))
}

func printStats(c *cli.Context, stats []*runStat) error {
	w, style := c.App.Writer, screenOf(c).style
	for _, r := range stats {
		when := ""
		if r.timed {
			const form = "2006-01-02T15:04:05Z"
			took := time.Duration(min(float64(r.LastTime-r.FirstTime)*float64(time.Second), 9.2e18)).Round(time.Second)
			when = fmt.Sprintf(", %s to %s (%s)", formatTime(float64(r.FirstTime), form), formatTime(float64(r.LastTime), form), took)
		}
		title := style.Heading("run " + shown(r.Run))
		fmt.Fprintf(w, "%s: %d events, %s%s\n", title, r.Events, terminal.Size(r.Bytes), when)
		fmt.Fprintf(w, "sessions: started %d, stopped %d; checkpoints recorded: %d\n", r.Starts, r.Stops, r.Checkpoints)
		for _, f := range r.Files {
			fmt.Fprintf(w, "file %s: %d events, %s%s\n", shown(f.File), f.Events, terminal.Size(f.Bytes), f.remarks())
		}
		if err := r.table().Print(w, style); err != nil {
			return err
		}
		if err := printFindings(c, r.Findings); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

// endOfTime is the first second that microseconds since 1970 cannot count.
const endOfTime = 9.2e12

// formatTime formats a time; a number that cannot be a time is printed as it is.
func formatTime(seconds float64, form string) string {
	if !(math.Abs(seconds) < endOfTime) {
		return formatNumber(seconds)
	}
	return time.UnixMicro(int64(seconds * 1e6)).UTC().Format(form)
}

func (f *fileStat) remarks() (text string) {
	if f.Version != "" {
		text += ", " + shown(f.Version)
	}
	if f.Writer != "" {
		text += " by " + shown(f.Writer)
	}
	if f.Damage > 0 {
		text += ", damaged places: " + strconv.Itoa(f.Damage)
	}
	return text
}

func (r *runStat) table() *terminal.Table {
	t := terminal.NewTable("TAG", "PLUGIN", "POINTS", "STEPS", "BACK", "SIZE", "MIN", "MEAN", "MAX", "LAST", "NOT FINITE")
	for _, tag := range r.Tags {
		row := []string{
			shown(tag.Tag), orDash(tag.Plugin), strconv.Itoa(tag.Points),
			fmt.Sprintf("%d..%d", tag.MinStep, tag.MaxStep), strconv.Itoa(tag.Back), terminal.Size(tag.Bytes),
		}
		if v := tag.Scalar; v != nil {
			for _, x := range []number{v.Min, v.Mean, v.Max, v.Last} {
				row = append(row, strconv.FormatFloat(float64(x), 'g', 6, 64))
			}
			row = append(row, strconv.Itoa(v.NonFinite))
		}
		t.Add(row...)
	}
	return t
}

// addFindings checks the runs and gives each its findings; those about files
// that belong to no run go to the first. verdict is the result of the check.
func addFindings(c *cli.Context, s *source, args []string, stats []*runStat) (verdict, err error) {
	misnamed, err := findMisnamed(c, args)
	if err != nil {
		return nil, err
	}
	s.expect()
	k := &checker{source: s, findings: misnamed}
	if err := k.checkRuns(); err != nil {
		return nil, err
	}
	for _, f := range k.findings {
		i := max(0, slices.IndexFunc(stats, func(r *runStat) bool { return r.Run == f.Run }))
		stats[i].Findings = append(stats[i].Findings, f)
	}
	return k.result(), nil
}
