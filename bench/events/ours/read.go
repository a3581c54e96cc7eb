package main

import (
	"fmt"
	"os"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/tfevents"
)

// read loads all runs below dir, every point kept and every checksum tested.
func read(dir string) (*measure.Result, error) {
	watch := measure.Start()
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		return nil, err
	}
	loaded := tfevents.ReadRuns(fsys, runs, nil)
	r := watch.Result("")
	if r.Metrics["max_rss_mib"], err = peakMemory(); err != nil {
		return nil, err
	}
	r.Work, err = contents(loaded)
	return r, err
}

// contents says how many series and points there are, and what their steps add
// up to.
func contents(loaded []*tfevents.RunData) (string, error) {
	series, points, steps := 0, 0, int64(0)
	for _, d := range loaded {
		if d.Damage != nil {
			return "", d.Damage[0]
		}
		for _, s := range d.Series {
			series++
			points += s.Len()
			for p := range s.Points() {
				steps += p.Step
			}
		}
	}
	return fmt.Sprintf("%d series, %d points, steps add up to %d", series, points, steps), nil
}
