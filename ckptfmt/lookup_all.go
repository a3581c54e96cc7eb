package ckptfmt

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// LookupAll returns tensors in the order of names, or all of them ordered by
// name if names is nil. They are verified as by [BundleReader.Lookup], and the
// caller owns them. Several goroutines read; they have ended when it returns.
// The first error ends it.
func (r *BundleReader) LookupAll(ctx context.Context, names []string) ([]NamedTensor, error) {
	return r.all(ctx, names, r.Lookup)
}

// all calls one for each name, several at a time.
func (r *BundleReader) all(ctx context.Context, names []string, one func(string) (*Tensor, error)) ([]NamedTensor, error) {
	if names == nil {
		for info, err := range r.Tensors() {
			if err != nil {
				return nil, err
			}
			names = append(names, info.Name)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := make([]NamedTensor, len(names))
	next := make(chan int, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for range cap(next) {
		wg.Go(func() {
			for i := range next {
				t, err := one(names[i])
				if err != nil {
					stop(fmt.Errorf("reading checkpoint %s: %w", r.prefix, err))
				}
				out[i] = NamedTensor{names[i], t}
			}
		})
	}
	for i := range names {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}
