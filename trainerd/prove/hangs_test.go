//go:build unix

package prove

import (
	"errors"
	"testing"
	"time"
)

// A program that hangs after a restart fails, and the proof does not wait for it forever.
func TestHangs(t *testing.T) {
	p := &proof{
		Options:   Options{Command: func(string, string) []string { return []string{"sleep", "60"} }, Scratch: t.TempDir()},
		reference: &outcome{took: time.Millisecond}, report: &Report{}, least: 50 * time.Millisecond,
	}
	for name, disturbed := range map[string]*plan{"before it is disturbed": {Kill, moment{step: 1}}, "undisturbed": nil} {
		o, err := p.run(t.Context(), name, disturbed)
		if err != nil {
			t.Fatal(err)
		}
		if failed, ok := errors.AsType[*FailedError](o.failure); !ok || failed.Limit != p.least {
			t.Errorf("%s: failure %v", name, o.failure)
		}
	}
}
