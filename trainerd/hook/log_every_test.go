package hook

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogEveryAfterRewind has a training that went back to an earlier checkpoint: the steps
// between two lines are then no rate.
func TestLogEveryAfterRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		noTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
				return slog.Attr{}
			}
			return a
		}
		h := &LogEvery{Trigger: Trigger{Steps: 10}, Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: noTime}))}
		for _, step := range []int64{1, 11, 5, 15} {
			if err := h.AfterStep(t.Context(), nil, step); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		want := fmt.Sprintln("step=1") + fmt.Sprintln("step=11 steps_per_second=10") + fmt.Sprintln("step=5") + fmt.Sprintln("step=15 steps_per_second=10")
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}
