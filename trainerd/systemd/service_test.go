package systemd

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// served runs a Service in a bubble, and returns what it sent and when: script
// changes the state, between two looks.
func served(t *testing.T, watchdog time.Duration, script func(change func(func(st *State)))) []string {
	t.Helper()
	var sent []string
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var state State
		begun := time.Now()
		s := &Service{
			Watchdog: watchdog,
			State: func() State {
				mu.Lock()
				defer mu.Unlock()
				return state
			},
			Notify: func(all ...string) error {
				sent = append(sent, time.Since(begun).String()+" "+strings.Join(all, " "))
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Serve(ctx)
		}()
		time.Sleep(500 * time.Millisecond) // off the looks
		script(func(f func(st *State)) {
			mu.Lock()
			defer mu.Unlock()
			f(&state)
		})
		cancel()
		<-done
	})
	return sent
}

func TestServiceLife(t *testing.T) {
	got := served(t, 0, func(change func(func(st *State))) {
		time.Sleep(time.Second)
		change(func(st *State) { *st = State{Ready: true, Text: "step 1"} })
		time.Sleep(time.Second)
		change(func(st *State) { st.Text = "step 2" })
		time.Sleep(time.Second)
		change(func(st *State) { st.Stopping = true })
		time.Sleep(2 * time.Second)
		change(func(st *State) { st.Text = "saved" })
	})
	want := []string{
		"0s EXTEND_TIMEOUT_USEC=15000000",
		"1s EXTEND_TIMEOUT_USEC=15000000",
		"2s READY=1 STATUS=step 1",
		"3s STATUS=step 2",
		"4s STOPPING=1 EXTEND_TIMEOUT_USEC=15000000",
		"5s EXTEND_TIMEOUT_USEC=15000000",
		"5.5s STATUS=saved",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A daemon that has nothing to do was ready all the same.
func TestServiceEndsAtOnce(t *testing.T) {
	got := served(t, 0, func(change func(func(st *State))) {
		change(func(st *State) { *st = State{Ready: true, Stopping: true, Text: "complete"} })
	})
	want := []string{
		"0s EXTEND_TIMEOUT_USEC=15000000",
		"500ms READY=1",
		"500ms STOPPING=1 STATUS=complete",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The watchdog hears of steps and of what may take its time, not of a hang.
func TestWatchdog(t *testing.T) {
	ready := func(st *State) { st.Ready = true }
	for _, c := range []struct {
		name   string
		script func(change func(func(st *State)))
		want   string // the seconds at which it hears
	}{
		{"steps", func(change func(func(st *State))) {
			change(ready)
			for range 4 {
				change(func(st *State) { st.Progress++ })
				time.Sleep(time.Second)
			}
		}, "0s 1s 2s 3s 4s"},
		{"a hang", func(change func(func(st *State))) {
			change(ready)
			time.Sleep(10 * time.Second)
		}, "0s"},
		{"a hang after a step", func(change func(func(st *State))) {
			change(func(st *State) { st.Ready, st.Progress = true, 1 })
			time.Sleep(10 * time.Second)
		}, "0s 1s"},
		{"a hang after a long save", func(change func(func(st *State))) {
			change(func(st *State) { st.Ready, st.Busy = true, true })
			time.Sleep(3 * time.Second)
			change(func(st *State) { st.Busy = false })
			time.Sleep(10 * time.Second)
		}, "0s 1s 2s 3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var at []string
			sent := served(t, 4*time.Second, c.script)
			for _, s := range sent {
				if strings.HasSuffix(s, Alive) {
					at = append(at, s[:strings.IndexByte(s, ' ')])
				}
			}
			if got := strings.Join(at, " "); got != c.want {
				t.Errorf("signs of life at %s, want %s:\n%s", got, c.want, strings.Join(sent, "\n"))
			}
		})
	}
}
