package parallel

import (
	"context"
	"runtime"
	"sync"
)

// Each calls f with 0 to n-1, for as many at once as there are processors. After
// the end of ctx it begins no further call. The goroutines that make the calls
// have ended when it returns. It is for work that waits for files; [Run] is for
// steps of microseconds.
func Each(ctx context.Context, n int, f func(i int)) {
	EachOf(ctx, runtime.GOMAXPROCS(0), n, f)
}

// EachOf is Each for so many at once.
func EachOf(ctx context.Context, most, n int, f func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(n, most) {
		workers.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
}
