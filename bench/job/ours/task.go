//go:build unix

package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
)

// task is what a program is to do. It travels by the environment.
type task struct {
	logdir, journal string
	steps, every    int // how far to train, and the steps between two checkpoints
	width           int
}

// widthFor returns the width of the two layers whose weights and Adam's two moments
// of them have that size.
func widthFor(mib int) int {
	const bytesPerWeight = 3 * 4
	return int(math.Sqrt(float64(mib<<20) / (2 * bytesPerWeight)))
}

func (t task) env() []string {
	return append(os.Environ(), "RACE_LOGDIR="+t.logdir, "RACE_JOURNAL="+t.journal, "OMP_NUM_THREADS=1",
		fmt.Sprint("RACE_STEPS=", t.steps), fmt.Sprint("RACE_EVERY=", t.every), fmt.Sprint("RACE_WIDTH=", t.width))
}

func taskFromEnv() (t task, err error) {
	t.logdir, t.journal = os.Getenv("RACE_LOGDIR"), os.Getenv("RACE_JOURNAL")
	for name, to := range map[string]*int{"RACE_STEPS": &t.steps, "RACE_EVERY": &t.every, "RACE_WIDTH": &t.width} {
		if *to, err = strconv.Atoi(os.Getenv(name)); err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, nil
}
