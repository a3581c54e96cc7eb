package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/tfevents"
)

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "join the files of a run into one, without what a resumed training wrote again",
		ArgsUsage: "PATH... NEWFILE | LOGDIR OUTDIR",
		Description: "PATH is the directory of one run, or an events file. Several are joined into one run:\n" +
			"in the order of time if all files are named as TensorFlow names them, otherwise as they\n" +
			"are given. They are left as they are, NEWFILE must not exist. TensorBoard shows both as\n" +
			"long as both are in one directory.\n\n" +
			"A LOGDIR of several runs, or an OUTDIR that is there or ends in a slash, makes a tree:\n" +
			"each run becomes one file in its directory below OUTDIR. It stops before it writes if\n" +
			"one of the runs is there already.",
		Flags: []cli.Flag{
			runFlag(),
			dryRunFlag(),
			jsonFlag(),
		},
		Action: merge,
	}
}

// mergeInfo is what merge --json prints.
type mergeInfo struct {
	Run    string     `json:"run,omitempty"` // of a tree
	File   string     `json:"file"`
	DryRun bool       `json:"dry_run,omitempty"`
	From   []string   `json:"from"`
	Events int        `json:"events"`
	Purged int        `json:"purged"` // points left out
	Damage []damageAt `json:"damage"`

	damage []error // the same
}

func merge(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef("merge: want PATH and NEWFILE, got %d arguments", len(args))
	}
	if err := nonEmpty(c, args); err != nil {
		return err
	}
	paths, to := args[:len(args)-1], args[len(args)-1]
	if err := notStdin(c, paths); err != nil {
		return err
	}
	if len(paths) == 1 && isDir(paths[0]) {
		s, err := openWhole(c, paths[0])
		if err != nil {
			return err
		}
		if len(s.runs) > 1 || isDir(to) {
			return mergeTree(c, s, paths[0], to)
		}
	}
	s, run, err := runOf(c, paths)
	if err != nil {
		return err
	}
	var info *mergeInfo
	err = newFiles(c, func(files *newFileSet) (err error) {
		info, err = mergeRun(c, s, run, to, files)
		return err
	})
	if err != nil {
		return err
	}
	report := newReporter(c)
	report.all(info.damage)
	if err := printReport(c, info, "%s", info.words()); err != nil {
		return err
	}
	return report.result()
}

// words says what was done.
func (m *mergeInfo) words() string {
	verb := "holds"
	if m.DryRun {
		verb = "would hold"
	}
	return fmt.Sprintf("%s %s %d events of %d files; points left out: %d", m.File, verb, m.Events, len(m.From), m.Purged)
}

// mergeTree makes a tree of a log directory in which each run has one file.
func mergeTree(c *cli.Context, s *source, from, to string) error {
	t, err := newTree(c, from, to, s.runs)
	if err != nil {
		return err
	}
	s.expect() // files are read twice
	var infos []*mergeInfo
	err = newFiles(c, func(files *newFileSet) (err error) {
		infos, err = eachRun(c.Context, t.runs, func(run tfevents.Run) (*mergeInfo, error) {
			if err := files.mkdir(t.dir(run)); err != nil {
				return nil, err
			}
			orderByTime(run.Files)
			info, err := mergeRun(c, s, run, t.file(run, plainName(run.Files[0])), files)
			if err != nil {
				return nil, fmt.Errorf("run %s: %w", shown(run.Name), err)
			}
			info.Run = run.Name
			return info, nil
		})
		return err
	})
	if err != nil {
		return err
	}
	return printMerged(c, infos)
}

// printMerged prints what was done to each run of a tree.
func printMerged(c *cli.Context, infos []*mergeInfo) error {
	report := newReporter(c)
	for _, info := range infos {
		report.all(info.damage)
		if c.Bool("json") {
			continue
		}
		if err := printReport(c, nil, "%s", info.words()); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		if err := printJSON(c.App.Writer, infos); err != nil {
			return err
		}
	}
	return report.result()
}

// plainName is the name of a file without what says that it is compressed.
func plainName(path string) string { return strings.TrimSuffix(path, ".gz") }

// mergeRun joins the files of one run.
func mergeRun(c *cli.Context, s *source, run tfevents.Run, to string, files *newFileSet) (*mergeInfo, error) {
	var result *tfevents.MergeReport
	err := files.write(to, func(w io.Writer) (err error) {
		result, err = tfevents.MergeRun(w, s, run, &tfevents.RunOptions{MaxSize: maxRecord})
		return cmp.Or(err, c.Context.Err())
	})
	if err != nil {
		return nil, err
	}
	info := &mergeInfo{
		File: to, DryRun: c.Bool("dry-run"), From: run.Files,
		Events: result.Events, Purged: result.Purged, Damage: []damageAt{}, damage: result.Damage,
	}
	for _, err := range result.Damage {
		info.Damage = append(info.Damage, damageOf(err))
	}
	return info, nil
}

// runOf returns the run that paths stand for together, its files in the order
// of time.
func runOf(c *cli.Context, paths []string) (*source, tfevents.Run, error) {
	s := newSource(c)
	run := tfevents.Run{Name: "."}
	for _, path := range paths {
		one, err := openWhole(c, path)
		if err != nil {
			return nil, run, err
		}
		if len(one.runs) > 1 {
			return nil, run, usagef("merge: %s holds %d runs, the first two %q and %q; choose one with --run REGEXP",
				path, len(one.runs), one.runs[0].Name, one.runs[1].Name)
		}
		run.Files = append(run.Files, one.runs[0].Files...)
		s.bytes += one.bytes
	}
	orderByTime(run.Files)
	s.progress.Expect(s.bytes) // a second time: files are read twice
	return s, run, nil
}

// datedName matches file names that begin with their time.
var datedName = lazyregexp.New(`^events\.out\.tfevents\.\d{10}\.`)

// orderByTime sorts paths by the time in their names, if all have one.
func orderByTime(paths []string) {
	for _, p := range paths {
		if !datedName().MatchString(filepath.Base(p)) {
			return
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) })
}
