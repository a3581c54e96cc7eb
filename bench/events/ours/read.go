package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/trainerd/trainerd/tfevents"
)

// read loads all runs below dir, every point kept and every checksum tested.
func read(dir string) (result, error) {
	watch, err := startWatch()
	if err != nil {
		return result{}, err
	}
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		return result{}, err
	}
	loaded := make([]*tfevents.RunData, len(runs))
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(len(runs), runtime.GOMAXPROCS(0)) {
		readers.Go(func() {
			for i := range next {
				loaded[i] = tfevents.ReadRun(fsys, runs[i], nil)
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	readers.Wait()
	r, err := watch.result("")
	if err != nil {
		return result{}, err
	}
	if r.Metrics["max_rss_mib"], err = peakMemory(); err != nil {
		return result{}, err
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
			points += len(s.Points)
			for _, p := range s.Points {
				steps += p.Step
			}
		}
	}
	return fmt.Sprintf("%d series, %d points, steps add up to %d", series, points, steps), nil
}
