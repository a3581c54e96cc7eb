package main

import (
	"context"
	"fmt"
	"math"
	"time"

	gonum "gonum.org/v1/gonum/blas"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/internal/blas"
)

// gemm multiplies square matrices of small whole numbers, whose products are
// exact in any order of summation.
func gemm(_ context.Context, o *options) (*measure.Result, error) {
	n := o.size
	a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	for i := range a {
		a[i], b[i] = float32(i%7), float32(i%5)
	}
	multiply := func() {
		blas.Implementation{}.Sgemm(gonum.NoTrans, gonum.NoTrans, n, n, n, 1, a, n, b, n, 0, c, n)
	}
	multiply()
	best := time.Duration(math.MaxInt64)
	r, err := timed(func() error {
		for range o.times {
			begin := time.Now()
			multiply()
			best = min(best, time.Since(begin))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	for _, v := range c {
		sum += int64(v)
	}
	r.Work = fmt.Sprintf("%d products of %d by %d, sum %d", o.times, n, n, sum)
	work := 2 * float64(n) * float64(n) * float64(n) / 1e9
	r.Metrics["gflops"] = work * float64(o.times) / r.Seconds
	r.Metrics["best_gflops"] = work / best.Seconds()
	return r, nil
}
