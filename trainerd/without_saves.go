package trainerd

import "context"

// WithoutSaves calls f while no snapshot of the run is taken: a save that becomes due or is
// requested meanwhile waits until f returns, but a write in progress continues. So f's measurements
// of the model are known when a checkpoint of its step is made. A nested call with f's context is
// part of the outer one. f must not save with the Supervisor, which would wait for f to end.
func (sv *Supervisor) WithoutSaves(ctx context.Context, f func(ctx context.Context) error) error {
	r := sv.current()
	if r == nil || r.checkpoints == nil {
		return f(ctx)
	}
	return r.checkpoints.without(ctx, f)
}

// without calls f while c takes no snapshot.
func (c *checkpointer) without(ctx context.Context, f func(ctx context.Context) error) error {
	if ctx.Value(inSaveKey{}) == c || ctx.Value(quietKey{}) == c {
		return f(ctx)
	}
	if err := c.cutting.Lock(ctx); err != nil {
		return err
	}
	defer c.cutting.Unlock()
	return f(context.WithValue(ctx, quietKey{}, c))
}

type quietKey struct{}
