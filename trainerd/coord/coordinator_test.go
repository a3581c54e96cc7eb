package coord

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

var (
	errFirst = errors.New("first")
	errLate  = errors.New("too late")
)

func waitStop(ctx context.Context) error { <-ctx.Done(); return nil }

func TestCO2ShouldStopAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Coordinator
		if c.ShouldStop() {
			t.Error("ShouldStop is true at first")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if c.WaitForStop(ctx) {
			t.Error("WaitForStop reports a stop that nobody asked for")
		}
		go func() {
			time.Sleep(time.Second)
			c.RequestStop(nil)
		}()
		start := time.Now()
		if !c.WaitForStop(t.Context()) || time.Since(start) != time.Second {
			t.Errorf("WaitForStop did not wait for the stop; waited %v", time.Since(start))
		}
		if !c.ShouldStop() {
			t.Error("ShouldStop is false after the stop")
		}
	})
}

// TestShouldStopAtOnce has the caller's context end: no step is begun after that,
// although what watches the context may not have run yet.
func TestShouldStopAtOnce(t *testing.T) {
	var c Coordinator
	ctx, cancel := context.WithCancel(t.Context())
	end := c.AskedBy(ctx)
	if c.ShouldStop() {
		t.Error("ShouldStop is true at first")
	}
	cancel()
	if !c.ShouldStop() {
		t.Error("ShouldStop is false after the caller's context has ended")
	}
	end()
	if c.ShouldStop() {
		t.Error("ShouldStop asks a context that is no longer the caller's")
	}
}

func TestJoin(t *testing.T) {
	myError := errors.New("mine")
	tests := []struct {
		name  string
		clean []error
		run   func(c *Coordinator)
		want  []error // errors.Is, in the order of the text
	}{
		{"nothing to wait for", nil, func(*Coordinator) {}, nil},
		{"all return", nil, func(c *Coordinator) {
			c.Go("a", func(context.Context) error { return nil })
			c.Go("b", func(context.Context) error { return nil })
		}, nil},
		{"CO3 clean stop", nil, func(c *Coordinator) { c.Go("a", waitStop); c.RequestStop(nil) }, nil},
		{"CO11 first wins, later kept", nil, func(c *Coordinator) {
			c.Go("a", waitStop)
			c.RequestStop(errFirst)
			c.RequestStop(errLate)
		}, []error{errFirst, errLate}},
		{"error after a clean stop is kept", nil, func(c *Coordinator) {
			c.RequestStop(nil)
			c.RequestStop(errLate)
		}, []error{errLate}},
		{"error of a goroutine", nil, func(c *Coordinator) {
			c.Go("a", waitStop)
			c.Go("b", func(context.Context) error { return errFirst })
		}, []error{errFirst}},
		{"CO1 end of input is clean", nil, func(c *Coordinator) {
			c.Go("a", func(context.Context) error {
				return &session.OpError{Code: session.ErrOutOfRange.(*session.OpError).Code, Node: "reader"}
			})
		}, nil},
		{"CO1 own clean error", []error{myError}, func(c *Coordinator) { c.RequestStop(myError) }, nil},
		{"CO1 own clean errors replace the default", []error{myError}, func(c *Coordinator) { c.RequestStop(session.ErrOutOfRange) }, []error{session.ErrOutOfRange}},
		{"CO1 no clean errors", []error{}, func(c *Coordinator) { c.RequestStop(session.ErrOutOfRange) }, []error{session.ErrOutOfRange}},
		{"cancellation after the stop is clean", nil, func(c *Coordinator) {
			c.Go("a", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			c.RequestStop(nil)
		}, nil},
		{"cancellation as the cause is not", nil, func(c *Coordinator) { c.RequestStop(context.Canceled) }, []error{context.Canceled}},
		{"CO6 StopOnError", nil, func(c *Coordinator) {
			c.StopOnError("main", func(context.Context) error { return errFirst })
		}, []error{errFirst}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Coordinator{CleanStop: tt.clean}
			tt.run(&c)
			err := c.Join(time.Minute)
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("Join = %v; want %v", err, tt.want)
			}
			at := 0
			for _, want := range tt.want {
				i := strings.Index(err.Error()[at:], want.Error())
				if !errors.Is(err, want) || i < 0 {
					t.Fatalf("Join = %q; want %v in this order", err, tt.want)
				}
				at += i
			}
			if again := c.Join(time.Minute); (again == nil) != (err == nil) {
				t.Errorf("CO9 second Join = %v; want %v again", again, err)
			}
		})
	}
}

func TestCO6StopOnErrorWithoutError(t *testing.T) {
	var c Coordinator
	c.StopOnError("main", func(context.Context) error { return nil })
	if c.ShouldStop() {
		t.Error("StopOnError without an error asks for a stop")
	}
}

func TestCO8JoinWaitsWithoutStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Coordinator
		c.Go("quick", blockFor(time.Minute))
		c.Go("slow", blockFor(time.Hour))
		start := time.Now()
		sessiontest.MustNoErr(t, c.Join(0))
		if got := time.Since(start); got != time.Hour {
			t.Errorf("Join returned after %v; want %v, for it does not ask for a stop", got, time.Hour)
		}
	})
}

func blockFor(d time.Duration) func(context.Context) error {
	return func(context.Context) error { time.Sleep(d); return nil }
}

func TestCO8Stragglers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Coordinator
		c.Go("prompt", waitStop)
		c.Go("writer", blockFor(time.Hour))
		c.Go("feeder", blockFor(time.Hour))
		time.Sleep(time.Second)
		c.RequestStop(errFirst)
		start := time.Now()
		err := c.Join(3 * time.Second)
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("Join took %v; want the grace of 3s", got)
		}
		var stop *StopError
		if !errors.As(err, &stop) || !errors.Is(err, errFirst) {
			t.Fatalf("Join = %v; want the cause and a StopError", err)
		}
		if !strings.HasPrefix(err.Error(), "first") {
			t.Errorf("Join = %q; want the cause before the stragglers", err)
		}
		if len(stop.Stragglers) != 2 || stop.Stragglers[0].Name != "feeder" || stop.Stragglers[1].Name != "writer" {
			t.Fatalf("stragglers %+v; want feeder and writer", stop.Stragglers)
		}
		for _, s := range stop.Stragglers {
			if !strings.Contains(s.Stack, "blockFor") || s.Age != 4*time.Second {
				t.Errorf("straggler %s: age %v, stack:\n%s", s.Name, s.Age, s.Stack)
			}
		}
		if !strings.Contains(stop.Error(), "blockFor") {
			t.Errorf("error %q does not say where they are stuck", stop)
		}
		start = time.Now()
		if again := c.Join(time.Hour); !errors.Is(again, errFirst) || errors.As(again, &stop) && errors.Is(again, stop) || time.Since(start) > 0 {
			t.Errorf("second Join = %v after %v; want the cause alone, at once", again, time.Since(start))
		}
		c.Go("alone", blockFor(time.Hour))
		if err := c.Join(time.Second); !errors.As(err, &stop) || len(stop.Stragglers) != 1 {
			t.Errorf("Join = %v; want the only straggler", err)
		}
		time.Sleep(2 * time.Hour) // lets them end
	})
}

func TestCO5ClearForgets(t *testing.T) {
	var c Coordinator
	c.RequestStop(errFirst)
	if err := c.Join(0); !errors.Is(err, errFirst) {
		t.Fatalf("Join = %v", err)
	}
	if err := c.Err(); !errors.Is(err, errFirst) {
		t.Errorf("Err = %v", err)
	}
	log, lines := sessiontest.NewLog()
	c.SetLogger(log)
	for range 2 { // the second has nothing to forget
		c.Clear()
	}
	if c.ShouldStop() || c.Err() != nil {
		t.Error("Clear does not forget the stop")
	}
	ctx := c.Context()
	c.Clear()
	c.RequestStop(errLate)
	if ctx.Err() == nil || lines.String() != "" {
		t.Errorf("after Clear, a stop ends the context with %v, and is logged as %q", ctx.Err(), lines)
	}
	if err := c.Join(0); !errors.Is(err, errLate) || errors.Is(err, errFirst) {
		t.Errorf("Join after Clear = %v; want %v alone", err, errLate)
	}
}

func TestErrorAfterJoin(t *testing.T) {
	log, lines := sessiontest.NewLog()
	var c Coordinator
	c.SetLogger(log)
	c.RequestStop(nil)
	sessiontest.MustNoErr(t, c.Join(0))
	c.RequestStop(errLate)
	sessiontest.WantLog(t, lines, "too late")
	if err := c.Join(0); !errors.Is(err, errLate) {
		t.Errorf("second Join = %v; want %v", err, errLate)
	}
}

func TestCoordinatorPanic(t *testing.T) {
	var c Coordinator
	c.Go("a", waitStop)
	c.Go("b", func(context.Context) error { panic(errFirst) })
	err := c.Join(time.Minute)
	var p *PanicError
	if !errors.As(err, &p) || p.Name != "b" || !errors.Is(err, errFirst) || !strings.Contains(p.Stack, "TestCoordinatorPanic") {
		t.Errorf("Join = %v; want a PanicError of b", err)
	}
}

func TestCoordinatorGoexit(t *testing.T) {
	var c Coordinator
	c.Go("a", waitStop)
	c.Go("b", func(context.Context) error { runtime.Goexit(); return nil })
	var p *PanicError
	if err := c.Join(time.Minute); !errors.As(err, &p) || p.Name != "b" {
		t.Errorf("Join = %v; want a PanicError of b", err)
	}
}

func TestGoAfterStop(t *testing.T) {
	var c Coordinator
	c.RequestStop(nil)
	ran := false
	c.Go("late", func(ctx context.Context) error { ran = ctx.Err() != nil; return nil })
	sessiontest.MustNoErr(t, c.Join(time.Minute))
	if !ran {
		t.Error("a goroutine started after the stop does not see it")
	}
}
