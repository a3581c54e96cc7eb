package exec

import "sync"

// Cond is a lock whose holder may wait for changes by others.
type Cond struct {
	L       sync.Mutex
	changed chan struct{} // closed at every change
}

// NewCond returns a Cond.
func NewCond() Cond { return Cond{changed: make(chan struct{})} }

// Broadcast wakes all waiting calls, which look again. The caller holds g.L.
func (g *Cond) Broadcast() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Wait calls try under g.L until it is done or fails, waiting for changes in
// between.
func (g *Cond) Wait(c *KernelContext, try func() (done bool, err error)) error {
	for {
		g.L.Lock()
		done, err := try()
		changed := g.changed
		g.L.Unlock()
		if done || err != nil {
			return err
		}
		if err := c.wait(changed, nil); err != nil {
			return err
		}
	}
}

// wait blocks, without the state lock, until ch is ready. Meanwhile it does the work that
// comes from help.
func (c *KernelContext) wait(ch <-chan struct{}, help <-chan func()) error {
	return c.run.unlocked(func() error {
		return c.parked(func() error {
			for {
				select {
				case <-ch:
					return nil
				case f := <-help:
					f()
				case <-c.Context().Done():
					return c.CancelledError()
				case <-c.run.sess.ctx.Done():
					return errClosed
				}
			}
		})
	})
}

// SettleStreams is for a call whose run has drawn numbers and does not end as it
// should: a checkpoint has its draws.
func (c *KernelContext) SettleStreams() {
	c.run.acquire()
	c.run.settleStreams()
}

// AcquireToken takes the token of ch, which the returned function gives back.
func (c *KernelContext) AcquireToken(ch chan struct{}) (func(), error) {
	return c.AcquireOrHelp(ch, nil)
}

// AcquireOrHelp is AcquireToken, and does the work that comes from help while it waits.
func (c *KernelContext) AcquireOrHelp(ch chan struct{}, help <-chan func()) (func(), error) {
	select {
	case <-ch:
	default:
		if err := c.wait(ch, help); err != nil {
			return nil, err
		}
	}
	return func() { ch <- struct{}{} }, nil
}
