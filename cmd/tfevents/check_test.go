package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// TestCheckShortcuts holds what check finds when it leaves out what cannot matter
// against what it finds in every value.
func TestCheckShortcuts(t *testing.T) {
	different := 0
	for seed := range uint64(150) {
		dir := t.TempDir()
		random := rand.New(rand.NewPCG(seed, 18))
		calm := seed%4 == 0
		files := 1 + random.IntN(3)
		if calm {
			files = 1
		}
		for n := range files {
			name := filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.host", 1700000000+n*100))
			if err := os.WriteFile(name, randomEvents(t, random, float64(1700000000+n*100), calm), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		find := func(shortly bool) []finding {
			runs, err := tfevents.FindRuns(os.DirFS(dir), ".")
			if err != nil || len(runs) != 1 {
				t.Fatal(runs, err)
			}
			for i, f := range runs[0].Files {
				runs[0].Files[i] = filepath.Join(dir, f)
			}
			k := runChecker{source: &source{ctx: t.Context(), runs: runs}, everyValue: !shortly}
			if err := k.checkRun(runs[0]); err != nil {
				t.Fatal(err)
			}
			return k.findings
		}
		want := find(false)
		if len(want) > 0 {
			different++
		}
		if diff := cmp.Diff(want, find(true)); diff != "" {
			t.Fatalf("seed %d (-every value +what cannot be plain):\n%s", seed, diff)
		}
	}
	if different < 20 || different > 145 {
		t.Errorf("%d of 150 random runs have findings: the test proves nothing", different)
	}
}

// randomEvents returns a file of a few series. A calm one has nothing odd.
func randomEvents(t *testing.T, random *rand.Rand, begin float64, calm bool) []byte {
	var file bytes.Buffer
	now := func() time.Time { return time.Unix(int64(begin), 0) }
	w := tfevents.NewEventsWriter(&file, &tfevents.EventsWriterOptions{Now: now, Continue: !calm && random.IntN(8) == 0})
	if random.IntN(3) == 0 {
		start := &tfpb.SessionLog{Status: tfpb.SessionLog_START}
		e := &tfpb.Event{WallTime: begin, Step: random.Int64N(5), What: &tfpb.Event_SessionLog{SessionLog: start}}
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	step := random.Int64N(10)
	for i := range 1 + random.IntN(12) {
		step++
		if !calm && random.IntN(12) == 0 {
			step -= random.Int64N(4)
		}
		e := &tfpb.Event{WallTime: begin + float64(i), Step: step, What: &tfpb.Event_Summary{Summary: summary.New(randomValue(random, calm))}}
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	b := file.Bytes()
	if !calm && random.IntN(10) == 0 {
		b[random.IntN(len(b))] ^= 8
	}
	return b
}

func randomValue(random *rand.Rand, calm bool) *tfpb.Summary_Value {
	x := random.Float64()
	odd := random.IntN(40)
	if calm {
		odd = -1
	}
	switch odd {
	case 0:
		return summary.PluginTensor("loss", "other", nil, summary.Scalar("loss", x).GetTensor())
	case 1:
		v := summaryv1.Scalar("loss", x)
		v.Metadata = summary.Scalar("loss", x).Metadata
		return v
	case 2:
		return &tfpb.Summary_Value{Tag: "two", Value: summary.Scalar("two", x).Value}
	case 3:
		v := summary.Scalar("two", x)
		v.Metadata.DataClass = tfpb.DataClass_DATA_CLASS_TENSOR
		return v
	case 4:
		return summary.Text("loss", "words")
	}
	if random.IntN(2) == 0 {
		return summaryv1.Scalar("loss", x)
	}
	return summary.Scalar("two", x)
}
