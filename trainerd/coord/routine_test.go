package coord

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/session"
)

// TestDetach waits for a goroutine for a while, and then until it has ended.
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := Detach("save", func() error { time.Sleep(time.Minute); return errFirst })
		if d.DoneWithin(30*time.Second) || time.Since(began) != 30*time.Second {
			t.Errorf("it has ended after %v", time.Since(began))
		}
		stop := d.Straggling(30 * time.Second)
		if len(stop.Stragglers) != 1 || stop.Stragglers[0].Name != "save" || stop.Stragglers[0].Age != 30*time.Second || stop.Grace != 30*time.Second {
			t.Errorf("%+v", stop)
		}
		if text := stop.Error(); !strings.Contains(text, "after 30s: save (in github.com/trainerd/trainerd/trainerd/coord.TestDetach") {
			t.Errorf("the error is %q", text)
		}
		if !d.DoneWithin(time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("it has not ended after %v", time.Since(began))
		}
		<-d.Done()
		if err := d.Wait(); err != errFirst {
			t.Errorf("Wait = %v", err)
		}
		var p *PanicError
		if err := Detach("bad", func() error { panic("no") }).Wait(); !errors.As(err, &p) || p.Name != "bad" || p.Unwrap() != nil || err.Error() != "bad panicked: no" {
			t.Errorf("after a panic: %v", err)
		}
	})
}

// TestStackAmongMany finds the stack of a goroutine in a long dump.
func TestStackAmongMany(t *testing.T) {
	end := make(chan struct{})
	var all []*Detached
	wait := func() error { <-end; return nil }
	for range 500 {
		all = append(all, Detach("one of many", wait))
	}
	d := Detach("the last", wait)
	for d.routine.id.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if s := d.Straggling(0).Stragglers[0]; !strings.Contains(s.Stack, "TestStackAmongMany") {
		t.Errorf("its stack is %q", s.Stack)
	}
	close(end)
	for _, d := range append(all, d) {
		d.Wait()
	}
}

func TestStuckIn(t *testing.T) {
	const sleep = "goroutine 7 [sleep]:\ntime.Sleep(0x1)\n\t/go/src/time.go:1\n"
	for _, c := range []struct{ stack, want string }{
		{"", ""},
		{sleep, ""},
		{sleep + "net/http.(*conn).serve(0xc0)\n\t/go/src/server.go:2\n", ""},
		{sleep + "example.com/x/y.(*T).run(0xc0, 0x1)\n\t/src/y.go:2\nmain.main()\n\t/src/main.go:3\n", "example.com/x/y.(*T).run"},
		{sleep + "main.main()\n\t/src/main.go:3\n", "main.main"},
		{sleep + "main.noArguments\n\t/src/main.go:3\n", "main.noArguments"},
	} {
		if got := stuckIn(c.stack); got != c.want {
			t.Errorf("%q: %q, want %q", c.stack, got, c.want)
		}
	}
	if text := (&StopError{Grace: time.Second, Stragglers: []Straggler{{Name: "a"}, {Name: "b"}}}).Error(); !strings.HasSuffix(text, "after 1s: a, b") {
		t.Errorf("without stacks: %q", text)
	}
	for _, stack := range []string{"", "goroutine", "goroutine 7", "goroutine x [sleep]:", "routine 7 [sleep]:"} {
		if id, ok := parseGoroutineID([]byte(stack)); ok {
			t.Errorf("%q: goroutine %d", stack, id)
		}
	}
}

// TestEndsCleanly has the errors by which a run ends cleanly, by who has asked for the end.
func TestEndsCleanly(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errFirst)
	late, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	all := []error{session.ErrOutOfRange, context.Canceled, session.ErrCancelled, context.DeadlineExceeded, session.ErrDeadlineExceeded, errFirst}
	for _, c := range []struct {
		name  string
		ask   func(*Coordinator)
		clean []error
	}{
		{"nobody", func(*Coordinator) {}, all[:1]},
		{"a stop", func(c *Coordinator) { c.RequestStop(nil) }, all[:3]},
		{"a caller who has not", func(c *Coordinator) { c.AskedBy(t.Context()) }, all[:1]},
		{"a caller with a cause", func(c *Coordinator) { c.AskedBy(cancelled) }, []error{all[0], all[1], all[2], errFirst}},
		{"the caller's deadline", func(c *Coordinator) { c.AskedBy(late) }, all[:5]},
		{"a caller of before", func(c *Coordinator) { c.AskedBy(cancelled)() }, all[:1]},
	} {
		var co Coordinator
		c.ask(&co)
		for _, err := range all {
			want := false
			for _, clean := range c.clean {
				want = want || err == clean
			}
			if got := co.EndsCleanly(err); got != want {
				t.Errorf("%s: %v ends the run cleanly: %v", c.name, err, got)
			}
		}
	}
}

// TestSleep sleeps for a while, or until the end of a context: of both at once the end counts.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			sleep, end, took time.Duration
			want             bool
		}{
			{time.Second, time.Minute, time.Second, true},
			{time.Minute, time.Second, time.Second, false},
			{0, time.Minute, 0, true},
			{0, 0, 0, false},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), c.end)
			began := time.Now()
			if got := Sleep(ctx, c.sleep); got != c.want || time.Since(began) != c.took {
				t.Errorf("%v, end after %v: %v after %v", c.sleep, c.end, got, time.Since(began))
			}
			cancel()
		}
	})
}

// TestLoopFails: an error of Start keeps the loop from running; that of Stop is its result.
func TestLoopFails(t *testing.T) {
	fail := func(context.Context) error { return errFirst }
	called := func(context.Context) error { t.Error("it was called"); return nil }
	if err := (&Loop{Start: fail, Func: called, Stop: called}).Serve(t.Context()); err != errFirst {
		t.Errorf("Serve = %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := (&Loop{Func: called, Stop: fail}).Serve(ended); err != errFirst {
		t.Errorf("Serve = %v", err)
	}
	if err := ServiceFunc(fail).Serve(t.Context()); err != errFirst {
		t.Errorf("Serve = %v", err)
	}
}
