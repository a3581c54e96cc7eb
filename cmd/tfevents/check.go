package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "explain what TensorBoard will not show, or not as it was meant",
		ArgsUsage: "PATH",
		Description: "TensorBoard has two loaders: the data server, which most users have, and the one in\n" +
			"Python (--load_fast=false). Where they differ from each other or from what the files\n" +
			"hold, check says how and why, and ends with 4, or with 3 if a file is damaged.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
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
}

func (f finding) String() string {
	where := f.Run
	if f.File != "" {
		where = f.File
	}
	if f.Tag != "" {
		where += fmt.Sprintf(": tag %q", f.Tag)
	}
	return where + ": " + f.Problem
}

func check(c *cli.Context) error {
	path, err := oneArg(c, "PATH")
	if err != nil {
		return err
	}
	s, err := openSource(path)
	if err != nil {
		return err
	}
	k := checker{source: s, findings: []finding{}}
	for _, run := range s.runs {
		if err := c.Context.Err(); err != nil {
			return err
		}
		if err := k.checkRun(run); err != nil {
			return err
		}
	}
	if err := k.print(c); err != nil {
		return err
	}
	return k.result()
}

// checker collects findings.
type checker struct {
	source   *source
	findings []finding
}

func (k *checker) print(c *cli.Context) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, k.findings)
	}
	for _, f := range k.findings {
		if _, err := fmt.Fprintln(c.App.Writer, f); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) result() error {
	for _, f := range k.findings {
		if f.Damage {
			return errDamaged
		}
	}
	if len(k.findings) > 0 {
		return errDiffers
	}
	return nil
}

func (k *checker) checkRun(run tfevents.Run) error {
	for _, name := range run.Files {
		if err := k.checkFile(run, name); err != nil {
			return err
		}
	}
	read := func(mode tfevents.Purge) *tfevents.RunData {
		return tfevents.ReadRun(k.source.fsys, run, &tfevents.RunOptions{Purge: mode})
	}
	meant, python, server := read(tfevents.PurgeExact), read(tfevents.PurgePython), read(tfevents.PurgeDataServer)
	for _, s := range meant.Series {
		problem := formProblem(s)
		if problem == "" && len(meant.Damage) == 0 {
			problem = purgeProblem(s, python.Lookup(s.Tag), server.Lookup(s.Tag))
		}
		if problem == "" {
			problem = sampleProblem(s)
		}
		if problem != "" {
			k.findings = append(k.findings, finding{Run: run.Name, Tag: s.Tag, Problem: problem})
		}
	}
	if len(meant.Series) == 0 {
		k.findings = append(k.findings, finding{Run: run.Name, Problem: "holds nothing to show"})
	}
	return nil
}

// usualName matches the names that TensorFlow and its kin give their files.
var usualName = regexp.MustCompile(`^events\.out\.tfevents\.\d{10}\..*[^~]$`)

var backupSuffix = regexp.MustCompile(`\.(bak|tmp|swp|old|orig|gz|zip|part)$`)

func (k *checker) checkFile(run tfevents.Run, name string) error {
	file := k.source.path(name)
	add := func(damage bool, format string, args ...any) {
		k.findings = append(k.findings, finding{run.Name, file, "", damage, fmt.Sprintf(format, args...)})
	}
	if base := path.Base(name); !usualName.MatchString(base) || backupSuffix.MatchString(base) {
		add(false, "is read too, in the order of its name, because that contains \"tfevents\"; move copies out of the log directory")
	}
	first := true
	err := eachRecord(file, func(data []byte) error {
		e := new(tfpb.Event)
		if err := proto.Unmarshal(data, e); err != nil {
			add(true, "holds a record that is no event: the Python loader stops loading, also other runs; the data server gives this file up")
			return nil
		}
		if first && e.GetFileVersion() == "" {
			add(false, "does not begin with a version: the Python loader takes every step back for a restart and drops points")
		}
		first = false
		if math.IsNaN(e.GetWallTime()) {
			add(false, "holds an event at step %d without a time: the data server gives the file up there", e.GetStep())
		}
		return nil
	}, func(err error) { add(true, "%s", damageProblem(err)) })
	if err != nil {
		return err
	}
	if info, err := os.Stat(file); err == nil && info.Size() == 0 {
		add(false, "is empty")
	}
	return nil
}

// damageProblem says what the loaders make of damage.
func damageProblem(err error) string {
	var damage *tfevents.CorruptError
	if !errors.As(err, &damage) {
		return err.Error()
	}
	where := fmt.Sprintf("offset %d: ", damage.Offset)
	switch {
	case damage.Torn():
		return where + "the last record is not complete: both loaders wait for the rest; if its writer is gone, repair the file"
	case damage.Part == tfevents.PartLength:
		return where + "damaged length: both loaders see nothing of this file from here on; repair the file"
	}
	return where + "damaged data: the Python loader sees nothing of this file from here on, the data server shows what it makes of it; repair the file"
}

// formProblem says why a series is not shown at all.
func formProblem(s *tfevents.Series) string {
	if s.Plugin() == "" && s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return "names no plugin: no page shows it"
	}
	if s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return fmt.Sprintf("plugin %q is not one of TensorBoard's own, and the tag has no data class: the data server does not show it", s.Plugin())
	}
	if s.Metadata.GetDataClass() != tfpb.DataClass_DATA_CLASS_SCALAR {
		return ""
	}
	odd := 0
	for _, p := range s.Points {
		t := p.Value.GetTensor()
		if t == nil {
			continue // a simple_value
		}
		if t.GetDtype() != tfpb.DataType_DT_FLOAT || len(t.GetTensorShape().GetDim()) > 0 {
			odd++
		}
	}
	if odd > 0 {
		return fmt.Sprintf("%d of %d points are not single float32 values: the data server does not show them", odd, len(s.Points))
	}
	return ""
}

// purgeProblem says how the loaders differ from what a resumed training meant.
func purgeProblem(meant, python, server *tfevents.Series) string {
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
	return strings.Join(parts, ", ") + "; merge the run's files"
}

// difference compares the points of a series with those that a loader keeps.
func difference(meant, shown *tfevents.Series) string {
	type id struct {
		step int64
		time float64
	}
	want := make(map[id]int)
	for _, p := range meant.Points {
		want[id{p.Step, p.WallTime}]++
	}
	extra, missing := 0, len(meant.Points)
	if shown != nil {
		for _, p := range shown.Points {
			if at := (id{p.Step, p.WallTime}); want[at] > 0 {
				want[at]--
				missing--
			} else {
				extra++
			}
		}
	}
	switch {
	case extra > 0 && missing > 0:
		return fmt.Sprintf("shows %s that were overtaken and lacks %d", points(extra), missing)
	case extra > 0:
		return fmt.Sprintf("shows %s that were overtaken", points(extra))
	case missing > 0:
		return "lacks " + points(missing)
	}
	return ""
}

func points(n int) string {
	if n == 1 {
		return "1 point"
	}
	return fmt.Sprintf("%d points", n)
}

// shownScalars is how many points of a scalar TensorBoard shows by default.
const shownScalars = 1000

func sampleProblem(s *tfevents.Series) string {
	if s.Plugin() != tfevents.PluginScalars || len(s.Points) <= shownScalars {
		return ""
	}
	return fmt.Sprintf("%d of %d points are shown, a random choice; --samples_per_plugin=scalars=%d shows all", shownScalars, len(s.Points), len(s.Points))
}
