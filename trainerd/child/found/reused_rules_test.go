//go:build unix

package found

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// reusedAt is a checkpoint of a name and step, found when a start had reported a step.
func reusedAt(name string, step, reported int64, start int, minute int) Checkpoint {
	at := time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
	return Checkpoint{Path: "/logdir/" + name, Step: step, Saved: at, files: []string{name}, first: Moment{Step: reported, Attempt: start, At: at}}
}

func TestFellBack(t *testing.T) {
	slot3, named := reusedAt("slot_3.pt", 3, 300, 1, 1), reusedAt("ckpt-30.pt", 30, 30, 1, 1)
	unknown := reusedAt("ckpt-30.pt", 30, 30, 0, 1)
	for _, tc := range []struct {
		what string
		a, b Checkpoint
		want bool
	}{
		{"the next in turn", slot3, reusedAt("slot_0.pt", 0, 400, 1, 2), true},
		{"one without a number", slot3, reusedAt("last.pt", NoStep, 400, 1, 2), false},
		{"the same number", slot3, reusedAt("slot_3.pt", 3, 400, 1, 2), false},
		{"a higher number", slot3, reusedAt("slot_4.pt", 4, 400, 1, 2), false},
		{"written before", slot3, reusedAt("slot_0.pt", 0, 400, 1, 0), false},
		{"no step since", slot3, reusedAt("slot_0.pt", 0, 300, 1, 2), false},
		{"the next in turn, in another start", slot3, reusedAt("slot_0.pt", 0, 400, 2, 2), true},
		{"a step, and then a lower number", named, reusedAt("ckpt-3.pt", 3, 400, 1, 2), true},
		{"a step, and another start that counts its reports in another way", named, reusedAt("ckpt-3.pt", 3, 400, 2, 2), false},
		{"a step, in starts that are not known", unknown, reusedAt("ckpt-3.pt", 3, 400, 0, 2), false},
	} {
		if got := fellBack(&tc.a, &tc.b); got != tc.want {
			t.Errorf("%s: fell back: %v", tc.what, got)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	for name, want := range map[string]place{
		"fold1/epoch_3.pt":   {"", []int64{1}, 3},
		"epoch2/step40.pt":   {"", []int64{2}, 40},
		"step60_epoch1.pt":   {"", []int64{1}, 60},
		"epoch1/last.pt":     {},
		"epoch_3.pt":         {},
		"w1_20.npz":          {},
		"last.pt":            {},
		"slot_3/model_a7.pt": {},
	} {
		got, ok := placeOf(name)
		if ok != (want.outer != nil) || ok && (!slices.Equal(got.outer, want.outer) || got.step != want.step) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

// TestOrderOfPlaces has steps that go on, in names that come in another order, and in two runs.
func TestOrderOfPlaces(t *testing.T) {
	for _, names := range [][]string{
		{"epoch1/step40.pt", "epoch0/step20.pt"},
		{"version_0/epoch=5-step=60.ckpt", "version_1/epoch=0-step=10.ckpt", "version_1/epoch=1-step=20.ckpt"},
	} {
		if beginAgain(names) {
			t.Errorf("%q: steps begin again", names)
		}
	}
}

// TestTurnsByTheEarliest has the names 1, 2 and 3 in turn. 1 was written between the others: it
// comes after the earliest of those with higher numbers.
func TestTurnsByTheEarliest(t *testing.T) {
	s := openStore(t, t.TempDir(), "slot_*")
	s.known = []Checkpoint{reusedAt("slot_1.pt", 1, 150, 1, 2), reusedAt("slot_2.pt", 2, 1, 1, 1), reusedAt("slot_3.pt", 3, 200, 1, 3)}
	if !s.learnTurns() || !s.Reuses() {
		t.Error("that names take turns is not seen")
	}
}

// TestToldByTime has what is forgotten, and what is kept under another key, once numbers are used again: two files
// with one step were taken for one checkpoint.
func TestToldByTime(t *testing.T) {
	s := openStore(t, t.TempDir(), "epoch*/*")
	joined := reusedAt("epoch0/step20.pt", 20, 20, 1, 1)
	joined.files = []string{"epoch0/step20.pt", "epoch1/step20.pt"}
	alone := reusedAt("epoch1/step40.pt", 40, 40, 1, 2)
	alone.record = &manifest.Record{Name: "epoch1/step40.pt", Step: 40, Parts: alone.files}
	s.records[alone.key()] = alone.record
	s.known = []Checkpoint{joined, alone}
	s.seen = map[key]Checkpoint{joined.key(): joined, alone.key(): alone}
	s.refused[joined.key()], s.withheld[joined.key()] = Rejected{Checkpoint: joined}, true
	s.tellByTime()
	if len(s.known) != 1 || s.known[0].Path != alone.Path || s.known[0].record == nil || s.known[0].record.Step != NoStep {
		t.Errorf("known are %+v", s.known)
	}
	if got := slices.Collect(maps.Values(s.seen)); len(got) != 1 || got[0].Path != alone.Path || s.seen[got[0].key()].Step != NoStep {
		t.Errorf("seen are %+v", got)
	}
	if len(s.refused)+len(s.withheld) > 0 {
		t.Errorf("refused are %v, withheld %v", s.refused, s.withheld)
	}
}

// TestRetoldKeepsItsStep has what the number in a name says that was taken for a step: where nothing else
// says how far the program had come, that is it.
func TestRetoldKeepsItsStep(t *testing.T) {
	s := openStore(t, t.TempDir(), "*")
	recorded := reusedAt("step_20.pt", 20, 0, 1, 1)
	recorded.record = &manifest.Record{}
	for _, tc := range []struct {
		c    Checkpoint
		want int64
	}{
		{reusedAt("step_20.pt", 20, 0, 1, 1), 20},
		{reusedAt("step_20.pt", 20, 1, 1, 1), 1},
		{recorded, 0},
		{reusedAt("last.pt", NoStep, 0, 1, 1), 0},
		{reusedAt("epoch_20.pt", 20, 0, 1, 1), 0},
	} {
		if ok := s.retell(&tc.c); !ok || tc.c.first.Step != tc.want || tc.c.Step != NoStep {
			t.Errorf("%s: %v, the program had come to %d, want %d", filepath.Base(tc.c.Path), ok, tc.c.first.Step, tc.want)
		}
	}
}
