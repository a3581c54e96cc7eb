package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
)

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "join the files of a run into one, without what a resumed training wrote again",
		ArgsUsage: "PATH NEWFILE",
		Description: "PATH is the directory of one run. Its files are left as they are, NEWFILE must not\n" +
			"exist. TensorBoard shows both as long as both are in one directory.",
		Action: merge,
	}
}

func merge(c *cli.Context) error {
	path, to, err := twoArgs(c, "PATH", "NEWFILE")
	if err != nil {
		return err
	}
	s, err := openSource(path)
	if err != nil {
		return err
	}
	if len(s.runs) > 1 {
		return usagef("merge: %s holds %d runs, the first two %q and %q; merge them one by one", path, len(s.runs), s.runs[0].Name, s.runs[1].Name)
	}
	report := newReporter(c)
	var result *tfevents.MergeReport
	err = createFile(to, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<16)
		if result, err = tfevents.MergeRun(w, s.fsys, s.runs[0], nil); err != nil {
			return err
		}
		return w.Flush()
	})
	if err != nil {
		return err
	}
	for _, err := range result.Damage {
		report.damaged(s.located(err))
	}
	fmt.Fprintf(c.App.ErrWriter, "tfevents: %s holds %d events of %d files; points left out: %d\n", to, result.Events, len(s.runs[0].Files), result.Purged)
	return nil
}
