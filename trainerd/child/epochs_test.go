//go:build unix

package child

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// TestEpochs has a program that names its checkpoints by epochs and reports steps:
// what it repeats, loses and keeps is counted in steps.
func TestEpochs(t *testing.T) {
	sv, out := supervise(t, "steps 1 40;write ckpt-epoch_1;exit 1|env STEP;steps 41 80;write ckpt-epoch_2;date ckpt-epoch_2;say ready;sleep")
	sv.ScanEvery = time.Hour // the scan at the end of a start finds them, when all is read
	sv.Retention = []retention.Policy{retention.Best{Metric: "loss", N: 2}}
	ctx, stop := context.WithCancel(t.Context())
	sv.Stdout = &stopper{screen: out, at: "ready", stop: stop}
	exit, err := sv.Run(ctx)
	if exit.Cause != Stopped || err != nil {
		t.Fatalf("got %v, %v", exit.Cause, err)
	}
	if got := fmt.Sprint(len(curve(t, sv.Logdir, "loss"))); got != "80" {
		t.Errorf("the curve has %s points, want 80", got)
	}
	if !strings.Contains(out.String(), `STEP is "1"`) {
		t.Errorf("the program was not given the number in the name:\n%s", out)
	}
	records, bad := manifest.Records(sv.Logdir)
	if len(bad) > 0 || len(records) != 2 {
		t.Fatalf("got %d records, %v", len(records), bad)
	}
	for _, r := range records {
		if got := r.Metrics["loss"]; r.Reported != 40*r.Step || float64(got) != 1/float64(40*r.Step) {
			t.Errorf("epoch %d was recorded at step %d with loss %v", r.Step, r.Reported, got)
		}
	}
}

// stopper stops a run at a line.
type stopper struct {
	*screen
	at   string
	stop func()
}

func (s *stopper) Write(b []byte) (int, error) {
	if strings.TrimSpace(string(b)) == s.at {
		s.stop()
	}
	return s.screen.Write(b)
}

// TestBeganAgain has a program that does not load what it is given.
func TestBeganAgain(t *testing.T) {
	for script, want := range map[string]bool{
		"steps 1 20;write ckpt-20;exit 1|steps 1 30":  true,
		"steps 1 20;write ckpt-20;exit 1|steps 21 30": false,
		"steps 1 20;write ckpt-20;exit 1|resume 30":   false,
	} {
		sv, _ := supervise(t, script)
		var log bytes.Buffer
		sv.Log = slog.New(slog.NewTextHandler(&log, nil))
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "has begun from the beginning"); got != want {
			t.Errorf("%s: reported: %v, want %v\n%s", script, got, want, log.String())
		}
	}
}
