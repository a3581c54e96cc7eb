package exec

import "context"

// ahead is a call that makes what a later run of the same step will ask for. It takes
// no state lock, and does not wait for steps that hold it: what it calls must access no
// state but the streams of [KernelContext.DrawFrom].
type ahead struct {
	run   run
	lane  lane
	frame frame
	call  KernelContext
}

// MayRunAhead reports whether the run may leave behind a call ahead. An observer's may
// not, nor may one where the session holds more than half of what it may take in memory.
func (c *KernelContext) MayRunAhead() bool {
	m := &c.run.sess.memory
	return c.run.pass.in && !c.run.sess.observes && (m.max < 0 || m.held() < m.max/2)
}

// RunAhead calls f with a call ahead of the same step, and then done, at once or in a
// goroutine that [Session.Close] waits for. A cut of the input waits for it, too. lost
// says that f has failed because the session was closed. It reports false, and calls
// neither, when the session is closed already.
func (c *KernelContext) RunAhead(atOnce bool, f func(sub *KernelContext) error, done func(err error, lost bool)) bool {
	s := c.run.sess
	a := &ahead{frame: frame{plan: c.f.plan}}
	a.lane.init()
	a.run = run{sess: s, ctx: context.Background(), limit: c.run.limit, ahead: true, pass: gatePassage{nested: true}}
	if s.ownsResources {
		a.run.ctx = s.ctx // nobody will ask for what is lost
	}
	a.call = KernelContext{ctx: a.run.ctx, run: &a.run, f: &a.frame, step: c.step, lane: &a.lane}
	if atOnce {
		a.do(f, done)
		return true
	}
	s.res.gate.join()
	started := s.inBackground(func() {
		defer s.res.gate.leave()
		a.do(f, done)
	})
	if !started {
		s.res.gate.leave()
	}
	return started
}

func (a *ahead) do(f func(sub *KernelContext) error, done func(err error, lost bool)) {
	err := a.try(f)
	done(err, err != nil && a.run.ctx.Err() != nil)
}

// try calls f. What bails out of it, or panics, is an error.
func (a *ahead) try(f func(sub *KernelContext) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = recovered(a.call.step, p)
		}
	}()
	return f(&a.call)
}
