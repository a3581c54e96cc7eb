package daemon

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plainLog writes lines without the time.
func plainLog(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// TestLogProgress trains ten steps a second for five minutes.
func TestLogProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := &logProgress{log: plainLog(&b)}
		p.begin(100, 3000, "logs/model.ckpt-100")
		for step := int64(101); step <= 3000; step++ {
			time.Sleep(100 * time.Millisecond)
			p.step(step, 1/float64(step))
		}
		p.end()
		want := []string{
			`msg="restored; training continues" step=100 steps=3000 checkpoint=logs/model.ckpt-100`,
			"msg=training step=110 loss=0.009091 steps_per_sec=10 eta=4m49s",
			"msg=training step=130 loss=0.007692 steps_per_sec=10 eta=4m47s",
			"msg=training step=170 loss=0.005882 steps_per_sec=10 eta=4m43s",
			"msg=training step=250 loss=0.004 steps_per_sec=10 eta=4m35s",
			"msg=training step=410 loss=0.002439 steps_per_sec=10 eta=4m19s",
			"msg=training step=730 loss=0.00137 steps_per_sec=10 eta=3m47s",
			"msg=training step=1330 loss=0.0007519 steps_per_sec=10 eta=2m47s",
			"msg=training step=1930 loss=0.0005181 steps_per_sec=10 eta=1m47s",
			"msg=training step=2530 loss=0.0003953 steps_per_sec=10 eta=47s",
			"msg=training step=3000 loss=0.0003333 steps_per_sec=10 eta=0s",
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(b.String()), "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestProgressFromUnknownStep has a program that resumes from a checkpoint without a step in
// its name: its first report says where.
func TestProgressFromUnknownStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b, bar bytes.Buffer
		p, q := &logProgress{log: plainLog(&b)}, newBarProgress(&bar)
		for _, show := range []progress{p, q} {
			show.begin(-1, 0, "logs/last.pt")
		}
		for step := int64(2001); step <= 2040; step++ {
			time.Sleep(100 * time.Millisecond)
			p.step(step, 0.5)
			q.step(step, 0.5)
		}
		p.end()
		q.end()
		want := []string{
			`msg="restored; training continues" steps="until the end" checkpoint=logs/last.pt`,
			"msg=training step=2010 loss=0.5 steps_per_sec=0",
			"msg=training step=2030 loss=0.5 steps_per_sec=10",
			"msg=training step=2040 loss=0.5 steps_per_sec=10",
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(b.String()), "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !strings.HasPrefix(bar.String(), "resuming, restored from last.pt\n") {
			t.Errorf("got %q", bar.String())
		}
	})
}

func TestBarProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := newBarProgress(&b)
		p.begin(50, 100, "/logs/model.ckpt-50")
		for step := int64(51); step <= 100; step++ {
			time.Sleep(50 * time.Millisecond)
			if step == 80 {
				p.saved(79)
				p.Write([]byte("a warning\n"))
			}
			p.step(step, 100-float64(step))
		}
		p.end()
		want := []string{
			"resuming at step 50, restored from model.ckpt-50",
			"50% [=========>..........]",
			"51% [=========>..........]   step 51/100  loss 49  20 steps/s  ETA 2s",
			"79% [==============>.....]   step 79/100  loss 21 █▇▆▆▅▄▄▃▂▂▁▁  20 steps/s  ETA 1s",
			"a warning",
			"81% [===============>....]   step 81/100  loss 19 █▇▆▆▅▄▄▃▂▂▁▁  20 steps/s  ETA 1s  saved 79",
			"100% [====================]   step 100/100  loss 0 █▇▆▆▅▄▄▃▂▂▁▁  20 steps/s  ETA 0s  saved 79",
		}
		shown := pictures(b.String())
		for _, w := range want {
			i := slices.Index(shown, w)
			if i < 0 {
				t.Fatalf("the screen does not show %q next, but\n%s", w, strings.Join(shown, "\n"))
			}
			shown = shown[i+1:]
		}
		if len(shown) > 0 {
			t.Errorf("then the screen shows %q", shown)
		}
	})
}

// In a long training the percentage stays the same, but what is after the bar
// does not.
func TestBarProgressLong(t *testing.T) {
	for _, steps := range []int64{1e9, 0} {
		synctest.Test(t, func(t *testing.T) {
			var b bytes.Buffer
			p := newBarProgress(&b)
			p.begin(0, steps, "")
			for step := int64(1); step <= 10; step++ {
				time.Sleep(100 * time.Millisecond)
				p.step(step, 1)
			}
			p.end()
			for _, want := range []string{"step 1", "step 5", "step 10"} {
				if !strings.Contains(b.String(), want) {
					t.Errorf("of %d steps: no %q in %q", steps, want, b.String())
				}
			}
		})
	}
}

// A line is no longer than the screen is wide, and no number in it is cut.
func TestBarProgressFits(t *testing.T) {
	for _, c := range []struct {
		columns int
		want    string
	}{
		{0, "  step 10/20  loss 3.5"}, {80, "  step 10/20  loss 3.5"}, {barWidth + 17, "  step 10/20"}, {barWidth + 11, ""}, {10, ""},
	} {
		p := newBarProgress(new(bytes.Buffer))
		p.columns = func() int { return c.columns }
		if got := p.fit([]string{"  step 10/20", "  loss 3.5", "  ETA 1h30m"}[:2]); got != c.want {
			t.Errorf("%d columns: %q, want %q", c.columns, got, c.want)
		}
	}
}

// pictures returns what a screen showed, one line after the other.
func pictures(screen string) (all []string) {
	for _, line := range strings.FieldsFunc(screen, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func TestSpeedometer(t *testing.T) {
	start := time.Unix(1000, 0)
	s := speedometer{step: 0, at: start}
	if got := s.eta(10); got != 0 {
		t.Errorf("ETA without a rate is %v, want 0", got)
	}
	if got := s.update(5, start); got != 0 {
		t.Errorf("rate without time is %v, want 0", got)
	}
	if got := s.update(10, start.Add(time.Second)); got != 10 {
		t.Errorf("rate is %v, want 10", got)
	}
	if got := s.update(40, start.Add(2*time.Second)); got != 20 {
		t.Errorf("smoothed rate is %v, want 20", got)
	}
	if got := s.eta(100); got != 3*time.Second {
		t.Errorf("ETA is %v, want 3s", got)
	}
}

// TestProgressOfTwoSessions: the last step of a session that was lost is logged
// once, not again at the end of one that made none.
func TestProgressOfTwoSessions(t *testing.T) {
	var text bytes.Buffer
	p := &logProgress{log: slog.New(slog.NewTextHandler(&text, nil))}
	p.begin(0, 0, "")
	p.step(7, 0.5)
	p.end()
	p.begin(9, 0, "model.ckpt-9")
	p.end()
	if got := strings.Count(text.String(), "step=7"); got != 1 {
		t.Errorf("step 7 is logged %d times:\n%s", got, text.String())
	}
}
