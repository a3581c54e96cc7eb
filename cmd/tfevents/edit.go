package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func editCommand() *cli.Command {
	return &cli.Command{
		Name:      "edit",
		Usage:     "copy a file, or all runs of a directory, with tags, steps, times or values changed",
		ArgsUsage: "FILE NEWFILE | LOGDIR OUTDIR",
		Description: "What is read is left as it is, NEWFILE must not exist, and OUTDIR must not hold one of\n" +
			"the runs. Events that do not change are copied byte for byte. The flags look at tags\n" +
			"and steps as they are before the change. Steps are cut before points are thinned out;\n" +
			"graphs, hyperparameters and what else belongs to a run as a whole are neither cut nor\n" +
			"thinned out. Points that a resumed training wrote again count: merge first.",
		Flags: []cli.Flag{
			runFlag(),
			&cli.StringSliceFlag{Name: "rename", Usage: "`OLD=NEW`: rename the tag OLD; may be given several times"},
			&cli.StringSliceFlag{Name: "delete", Usage: "delete tags that match the `REGEXP` as a whole and are not renamed, as __run_graph__ does the graphs; may be given several times"},
			&cli.Int64Flag{Name: "from-step", Usage: "leave out points before step `A`"},
			&cli.Int64Flag{Name: "to-step", Usage: "leave out points after step `B`"},
			&cli.IntFlag{Name: "every", Usage: "keep every `N`-th point of a tag, the first and the last"},
			&cli.IntFlag{Name: "max-points", Usage: "keep at most `N` points of a tag: of scalars the first, the last, and the lowest and highest of each stretch between"},
			&cli.StringSliceFlag{Name: "scale", Usage: "`REGEXP=X`: multiply the scalars of tags that match as a whole by X; may be given several times"},
			&cli.StringSliceFlag{Name: "offset", Usage: "`REGEXP=X`: add X to the scalars of tags that match as a whole, after --scale; may be given several times"},
			&cli.Int64Flag{Name: "shift", Usage: "add `N` to the steps of all events but graphs and versions"},
			&cli.DurationFlag{Name: "shift-time", Usage: "add a `DURATION` such as 90m or -1.5s to the times of all events"},
			dryRunFlag(),
			jsonFlag(),
		},
		Action: edit,
	}
}

// editInfo is what edit --json prints.
type editInfo struct {
	File     string `json:"file"`
	Files    int    `json:"files"`
	DryRun   bool   `json:"dry_run"`
	Renamed  int    `json:"renamed"`  // values
	Deleted  int    `json:"deleted"`  // values
	Cut      int    `json:"cut"`      // values
	Thinned  int    `json:"thinned"`  // values
	Rescaled int    `json:"rescaled"` // values
	Shifted  int    `json:"shifted"`  // events
	Retimed  int    `json:"retimed"`  // events
}

// edits are the changes that the command line asks for.
type edits struct {
	rename          map[string]string
	delete          []*regexp.Regexp
	first, last     int64 // steps
	every, most     int   // 0 for all points
	scales, offsets []tagNumber
	shift           int64
	later           time.Duration
}

// tagNumber is a number for the tags that match.
type tagNumber struct {
	tags   *regexp.Regexp
	number float64
}

func parseEdits(c *cli.Context) (*edits, error) {
	e := &edits{
		rename: make(map[string]string), first: math.MinInt64, last: math.MaxInt64,
		every: c.Int("every"), most: c.Int("max-points"), shift: c.Int64("shift"), later: c.Duration("shift-time"),
	}
	if err := e.parseTags(c); err != nil {
		return nil, err
	}
	if err := e.parsePoints(c); err != nil {
		return nil, err
	}
	var err error
	if e.scales, err = parseNumbers("scale", c.StringSlice("scale")); err != nil {
		return nil, err
	}
	if e.offsets, err = parseNumbers("offset", c.StringSlice("offset")); err != nil {
		return nil, err
	}
	if slices.ContainsFunc([]string{"rename", "delete", "from-step", "to-step", "every", "max-points", "scale", "offset"}, c.IsSet) {
		return e, nil
	}
	if e.shift == 0 && e.later == 0 {
		return nil, usagef("edit: nothing to do: want --rename, --delete, --shift or another change")
	}
	return e, nil
}

func (e *edits) parseTags(c *cli.Context) error {
	for _, r := range c.StringSlice("rename") {
		from, to, ok := strings.Cut(r, "=")
		if !ok || from == "" || to == "" {
			return usagef("edit: --rename %s: want OLD=NEW", r)
		}
		e.rename[from] = to
	}
	for _, d := range c.StringSlice("delete") {
		re, err := wholeTag(d)
		if err != nil {
			return usagef("edit: --delete %s: %w", d, err)
		}
		e.delete = append(e.delete, re)
	}
	return nil
}

// parsePoints reads which points of a tag stay.
func (e *edits) parsePoints(c *cli.Context) error {
	if c.IsSet("from-step") {
		e.first = c.Int64("from-step")
	}
	if c.IsSet("to-step") {
		e.last = c.Int64("to-step")
	}
	switch {
	case e.first > e.last:
		return usagef("edit: --from-step %d is after --to-step %d", e.first, e.last)
	case c.IsSet("every") && c.IsSet("max-points"):
		return usagef("edit: --every and --max-points exclude each other")
	case c.IsSet("every") && e.every < 1:
		return usagef("edit: --every %d: want 1 at least", e.every)
	case c.IsSet("max-points") && e.most < 1:
		return usagef("edit: --max-points %d: want 1 at least", e.most)
	}
	return nil
}

func parseNumbers(flag string, words []string) (numbers []tagNumber, err error) {
	for _, w := range words {
		at := strings.LastIndexByte(w, '=') // expressions may have one too
		if at < 1 {
			return nil, usagef("edit: --%s %s: want REGEXP=NUMBER", flag, w)
		}
		re, err := wholeTag(w[:at])
		if err != nil {
			return nil, usagef("edit: --%s %s: %w", flag, w, err)
		}
		x, err := strconv.ParseFloat(w[at+1:], 64)
		if err != nil {
			return nil, usagef("edit: --%s %s: %q is not a number", flag, w, w[at+1:])
		}
		numbers = append(numbers, tagNumber{re, x})
	}
	return numbers, nil
}

// wholeTag compiles an expression that must match a tag from end to end.
func wholeTag(expr string) (*regexp.Regexp, error) { return regexp.Compile("^(?:" + expr + ")$") }

// deletes reports whether a tag is deleted. To rename it means to keep it.
func (e *edits) deletes(tag string) bool {
	if _, renamed := e.rename[tag]; renamed {
		return false
	}
	for _, re := range e.delete {
		if re.MatchString(tag) {
			return true
		}
	}
	return false
}

func (e *edits) inRange(step int64) bool { return e.first <= step && step <= e.last }

func edit(c *cli.Context) error {
	from, to, err := twoArgs(c, "FILE", "NEWFILE")
	if err != nil {
		return err
	}
	e, err := parseEdits(c)
	if err != nil {
		return err
	}
	if from == stdinName && (e.every > 0 || e.most > 0) {
		return usagef("edit: --every and --max-points read a file twice: save the standard input to a file first")
	}
	s, err := openWhole(c, from)
	if err != nil {
		return err
	}
	if e.every > 0 || e.most > 0 {
		s.expect()
	}
	var done []*runEditor
	err = newFiles(c, func(files *newFileSet) (err error) {
		if from != stdinName && isDir(from) {
			done, err = e.editTree(c, s, from, to, files)
			return err
		}
		r, err := e.editRun(s, s.runs[0], func(string) string { return to }, files)
		done = []*runEditor{r}
		return err
	})
	if err != nil {
		return err
	}
	return printEdited(c, to, done)
}

// printEdited prints what was done to all runs.
func printEdited(c *cli.Context, to string, done []*runEditor) error {
	report := newReporter(c)
	info := editInfo{File: to, DryRun: c.Bool("dry-run")}
	for _, r := range done {
		info.add(&r.editInfo)
		report.all(r.damage)
	}
	if err := printReport(c, info, "values renamed: %d, deleted: %d; events shifted: %d; values cut: %d, thinned out: %d, rescaled: %d; times shifted: %d",
		info.Renamed, info.Deleted, info.Shifted, info.Cut, info.Thinned, info.Rescaled, info.Retimed); err != nil {
		return err
	}
	return report.result()
}

func (i *editInfo) add(run *editInfo) {
	i.Files += run.Files
	i.Renamed += run.Renamed
	i.Deleted += run.Deleted
	i.Cut += run.Cut
	i.Thinned += run.Thinned
	i.Rescaled += run.Rescaled
	i.Shifted += run.Shifted
	i.Retimed += run.Retimed
}

// editTree copies the runs of a directory, file by file.
func (e *edits) editTree(c *cli.Context, s *source, from, to string, files *newFileSet) ([]*runEditor, error) {
	t, err := newTree(c, from, to, s.runs)
	if err != nil {
		return nil, err
	}
	return eachRun(c.Context, t.runs, func(run tfevents.Run) (*runEditor, error) {
		if err := files.mkdir(t.dir(run)); err != nil {
			return nil, err
		}
		r, err := e.editRun(s, run, func(path string) string { return t.file(run, plainName(path)) }, files)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", shown(run.Name), err)
		}
		return r, nil
	})
}

// editRun copies the files of a run to their new names.
func (e *edits) editRun(s *source, run tfevents.Run, name func(string) string, files *newFileSet) (*runEditor, error) {
	r := e.newRun()
	if err := r.survey(s, run.Files); err != nil {
		return nil, err
	}
	for _, path := range run.Files {
		if err := files.records(name(path), func(w *tfrecord.Writer) error { return r.copyTo(w, s, path) }); err != nil {
			return nil, err
		}
		r.Files++
	}
	return r, nil
}
