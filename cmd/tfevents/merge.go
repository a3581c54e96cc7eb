package main

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
)

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "join the files of a run into one, without what a resumed training wrote again",
		ArgsUsage: "PATH... NEWFILE",
		Description: "PATH is the directory of one run, or an events file. Several are joined into one run:\n" +
			"in the order of time if all files are named as TensorFlow names them, otherwise as they\n" +
			"are given. They are left as they are, NEWFILE must not exist. TensorBoard shows both as\n" +
			"long as both are in one directory.",
		Flags:  []cli.Flag{jsonFlag()},
		Action: merge,
	}
}

// mergeInfo is what merge --json prints.
type mergeInfo struct {
	File   string     `json:"file"`
	From   []string   `json:"from"`
	Events int        `json:"events"`
	Purged int        `json:"purged"` // points left out
	Damage []damageAt `json:"damage"`
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
	s, run, err := runOf(c, paths)
	if err != nil {
		return err
	}
	var result *tfevents.MergeReport
	err = createFile(to, func(f *os.File) (err error) {
		w := bufio.NewWriterSize(f, 1<<16)
		if result, err = tfevents.MergeRun(w, s, run, &tfevents.RunOptions{MaxSize: maxRecord}); err != nil {
			return err
		}
		if err := c.Context.Err(); err != nil {
			return err
		}
		return w.Flush()
	})
	if err != nil {
		return err
	}
	report := newReporter(c)
	info := mergeInfo{File: to, From: run.Files, Events: result.Events, Purged: result.Purged, Damage: []damageAt{}}
	for _, err := range result.Damage {
		report.damaged(err)
		info.Damage = append(info.Damage, damageOf(err))
	}
	if err := printReport(c, info, "%s holds %d events of %d files; points left out: %d", to, result.Events, len(run.Files), result.Purged); err != nil {
		return err
	}
	return report.result()
}

// runOf returns the run that paths stand for together, its files in the order
// of time.
func runOf(c *cli.Context, paths []string) (*source, tfevents.Run, error) {
	s := newSource(c)
	run := tfevents.Run{Name: "."}
	for _, path := range paths {
		one, err := openSource(c, path)
		if err != nil {
			return nil, run, err
		}
		if len(one.runs) > 1 {
			return nil, run, usagef("merge: %s holds %d runs, the first two %q and %q; merge them one by one", path, len(one.runs), one.runs[0].Name, one.runs[1].Name)
		}
		run.Files = append(run.Files, one.runs[0].Files...)
		s.bytes += one.bytes
	}
	orderByTime(run.Files)
	s.progress.Expect(s.bytes) // a second time: files are read twice
	return s, run, nil
}

// datedName matches file names that begin with their time.
var datedName = regexp.MustCompile(`^events\.out\.tfevents\.\d{10}\.`)

// orderByTime sorts paths by the time in their names, if all have one.
func orderByTime(paths []string) {
	for _, p := range paths {
		if !datedName.MatchString(filepath.Base(p)) {
			return
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) })
}
