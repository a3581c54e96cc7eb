package eventlog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestSupersedeReadsOnce has a training that fails again and again, and is resumed from the same
// step each time: after the first time the run is not read.
func TestSupersedeReadsOnce(t *testing.T) {
	dir := t.TempDir()
	w, err := tfevents.NewFileWriter(dir, nil)
	sessiontest.MustNoErr(t, err)
	log, _ := sessiontest.NewLog()
	l := New(w, log)
	for step := range int64(9) {
		sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, step))
	}
	sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "speed", 1, 7))
	sessiontest.MustNoErr(t, l.Flush(t.Context()))
	l.Supersede(5)
	sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, 6))
	sessiontest.MustNoErr(t, l.Flush(t.Context()))
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	sessiontest.MustNoErr(t, err)
	for _, name := range names {
		sessiontest.MustNoErr(t, os.Remove(name))
	}
	l.Supersede(5)
	if want := map[string]int64{"loss": 6, "speed": 7}; !maps.Equal(l.superseding.old, want) {
		t.Errorf("superseded are the points %v, want %v", l.superseding.old, want)
	}
	l.Supersede(4)
	if len(l.superseding.old) > 0 {
		t.Errorf("of another step: %v, and there is nothing", l.superseding.old)
	}
	sessiontest.MustNoErr(t, l.Close())
}

// TestSupersedeAgain resumes trainings at random steps, often at the same one: what is known of
// the run without a look at it is what a look finds.
func TestSupersedeAgain(t *testing.T) {
	known := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		w, err := tfevents.NewFileWriter(dir, nil)
		sessiontest.MustNoErr(t, err)
		log, _ := sessiontest.NewLog()
		l := New(w, log)
		from := int64(0)
		for range 8 {
			sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", from))
			l.Supersede(from)
			for range random.IntN(6) {
				writeAny(t, l, random, from)
			}
			sessiontest.MustNoErr(t, l.Flush(t.Context()))
			if random.IntN(3) == 0 {
				from = random.Int64N(10)
			}
			if again := l.supersededAgain(from); again != nil {
				known++
				if want := superseded(dir, from); !maps.Equal(again, want) {
					t.Fatalf("seed %d: superseded are %v, want %v", seed, again, want)
				}
			}
		}
		sessiontest.MustNoErr(t, l.Close())
	}
	if known == 0 {
		t.Error("the run is read each time")
	}
}

// writeAny writes a point of some curve, in one of the ways that there are.
func writeAny(t *testing.T, l *Log, random *rand.Rand, from int64) {
	t.Helper()
	tag, step := fmt.Sprint("tag", random.IntN(4)), from+random.Int64N(6)
	switch random.IntN(12) {
	case 0:
		sessiontest.MustNoErr(t, l.AddScalar(t.Context(), tag, 1, max(step-3, 0)))
	case 1:
		sessiontest.MustNoErr(t, l.AddSummary(t.Context(), summary.New(summary.Scalar(tag, 1)), step))
	case 2:
		sessiontest.MustNoErr(t, l.AddSummary(t.Context(), summary.New(summary.Text("text", "x")), step))
	case 3:
		sessiontest.MustNoErr(t, l.Add(t.Context(), func(w *tfevents.FileWriter) error { return w.AddScalar(t.Context(), tag, 1, step) }))
	case 4:
		sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_CHECKPOINT, "m", step))
	default:
		sessiontest.MustNoErr(t, l.AddScalar(t.Context(), tag, 1, step))
	}
}
