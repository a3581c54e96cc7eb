package systemd

import (
	"context"
	"time"
)

// State is the state of a daemon.
type State struct {
	Ready    bool
	Stopping bool
	// Busy says that no progress is expected now: the daemon waits, restores,
	// compiles or saves, which is not a hang.
	Busy bool
	// Progress changes whenever the daemon has made progress.
	Progress int64
	Text     string // for `systemctl status`
}

// Service reports the state of a daemon to the manager: READY once, STATUS when the
// text changes, STOPPING once, more time while it starts or stops, and WATCHDOG
// only for progress, so that a daemon whose loop hangs is killed even if its
// other goroutines are alive.
type Service struct {
	// State is called in the goroutine of Serve.
	State func() State
	// Notify sends, like [Notifier.Notify]. Its error is ignored: a missing
	// manager is not a reason to end.
	Notify func(assignments ...string) error
	// Watchdog is the interval of [WatchdogInterval].
	Watchdog time.Duration
	// Wake, if not nil, makes Serve read the state immediately.
	Wake <-chan struct{}

	sent     State
	begun    bool
	statusAt time.Time
}

// Minimum time between two reads of the state, and between two texts.
const (
	look        = time.Second
	statusEvery = time.Second
	// extension is the time that is asked for, at each look, to start or stop.
	extension = 15 * time.Second
)

// Serve reports until ctx is done, and then one last time.
func (s *Service) Serve(ctx context.Context) {
	every := look
	if s.Watchdog > 0 {
		every = max(min(every, s.Watchdog/4), time.Millisecond)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		s.report(time.Now(), ctx.Err() != nil)
		select {
		case <-ctx.Done():
			s.report(time.Now(), true)
			return
		case <-s.Wake:
		case <-ticker.C:
		}
	}
}

// report sends what has changed.
func (s *Service) report(now time.Time, last bool) {
	st := s.State()
	var all []string
	if st.Ready && !s.sent.Ready {
		all = append(all, Ready)
	}
	if len(all) > 0 && st.Stopping {
		// In one datagram the manager would take the last one only, and find
		// that the daemon has ended before it was ready.
		s.Notify(all...)
		all = nil
	}
	if st.Stopping && !s.sent.Stopping {
		all = append(all, Stopping)
	}
	if !last && (!st.Ready || st.Stopping) {
		all = append(all, ExtendTimeout(extension))
	}
	turned := st.Ready != s.sent.Ready || st.Stopping != s.sent.Stopping
	if st.Text != s.sent.Text && (last || turned || now.Sub(s.statusAt) >= statusEvery) {
		all = append(all, Status(st.Text))
		s.statusAt = now
	} else {
		st.Text = s.sent.Text
	}
	if s.Watchdog > 0 && (st.Busy || st.Progress != s.sent.Progress || !s.begun) {
		all = append(all, Alive)
	}
	s.sent, s.begun = st, true
	if len(all) > 0 {
		s.Notify(all...)
	}
}
