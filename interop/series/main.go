// Series prints the points of all runs of a log directory, as one of the purge
// modes leaves them, for tests that compare them with what TensorBoard serves.
//
//	series LOGDIR exact|python|data-server|none
//
// Each is a line of JSON: run, tag, plugin, step, wall time.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/trainerd/trainerd/tfevents"
)

var modes = map[string]tfevents.Purge{
	"exact": tfevents.PurgeExact, "python": tfevents.PurgePython, "data-server": tfevents.PurgeDataServer, "none": tfevents.KeepAll,
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: series LOGDIR MODE")
		os.Exit(2)
	}
	if err := print(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "series:", err)
		os.Exit(1)
	}
}

func print(logdir, mode string) error {
	purge, ok := modes[mode]
	if !ok {
		return fmt.Errorf("no mode %q", mode)
	}
	fsys := os.DirFS(logdir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, run := range runs {
		d := tfevents.ReadRun(fsys, run, &tfevents.RunOptions{Purge: purge})
		for _, s := range d.Series {
			for p := range s.Points() {
				if err := out.Encode([]any{run.Name, s.Tag, s.Plugin(), p.Step, p.WallTime}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
