package main

import (
	"cmp"
	"context"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/tfevents"
)

// eachRun calls f for each run, for as many at once as there are processors, and
// returns the results in the order of the runs and the first error. After an error or
// an interruption it begins no further run. The goroutines that do it have ended when
// it returns.
func eachRun[T any](ctx context.Context, runs []tfevents.Run, f func(tfevents.Run) (T, error)) ([]T, error) {
	results, errs := make([]T, len(runs)), make([]error, len(runs))
	until, stop := context.WithCancel(ctx)
	defer stop()
	parallel.Each(until, len(runs), func(i int) {
		if results[i], errs[i] = f(runs[i]); errs[i] != nil {
			stop()
		}
	})
	return results, cmp.Or(append(errs, ctx.Err())...)
}
