package prove

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPickles compares what pickles hold: an object that is used twice is written
// once, so that a training which has loaded its state writes other bytes for the same.
func TestPickles(t *testing.T) {
	const dir = "../../ckptfmt/pickled/testdata/"
	if differ := diffFiles(dir+"shared-4.pkl", dir+"apart-4.pkl"); differ != nil {
		t.Errorf("equal ones differ: %+v", differ)
	}
	b, err := os.ReadFile(dir + "shared-4.pkl")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.pkl")
	changed := bytes.Replace(b, []byte("\x8c\x04step\x94K\x05"), []byte("\x8c\x04step\x94K\x06"), 1)
	if err := os.WriteFile(other, changed, 0o666); err != nil {
		t.Fatal(err)
	}
	if differ := diffFiles(dir+"shared-4.pkl", other); len(differ) != 1 || differ[0].Name != "step" || differ[0].MaxAbs != 1 {
		t.Errorf("another step: %+v", differ)
	}
}

// TestNumbersInArchives compares archives of PyTorch (2.15: a model, Adam, StepLR, numbers
// and the name of the file) whose tensors are the same.
func TestNumbersInArchives(t *testing.T) {
	const dir = "testdata/torch/"
	if differ := diffFiles(dir+"scalars-a.pt", dir+"scalars-same.pt"); differ != nil {
		t.Errorf("equal ones differ: %+v", differ)
	}
	differ := diffFiles(dir+"scalars-a.pt", dir+"scalars-best.pt")
	if len(differ) != 1 || differ[0].Name != "best/loss" || differ[0].MaxAbs != 0.25 || differ[0].part() != partBest {
		t.Errorf("another best loss: %+v", differ)
	}
}

// TestGeneratorsInArchives changes a bit of the state of NumPy's generator, a number of 128
// bits, in an archive of PyTorch.
func TestGeneratorsInArchives(t *testing.T) {
	b, err := os.ReadFile("../../ckptfmt/pickled/testdata/shared-4.pkl")
	if err != nil {
		t.Fatal(err)
	}
	archive := func(pickle []byte) []byte {
		var text bytes.Buffer
		w := zip.NewWriter(&text)
		f, err := w.Create("archive/data.pkl")
		if err == nil {
			_, err = f.Write(pickle)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return text.Bytes()
	}
	const long = "\x8a\x11" // of 17 bytes
	changed := bytes.Clone(b)
	changed[bytes.Index(b, []byte(long))+len(long)] ^= 1
	differ := diffNumbers(archive(b), archive(changed))
	if len(differ) != 1 || differ[0].Name != "rng/state/state" || differ[0].part() != partRandom {
		t.Errorf("differ %+v", differ)
	}
}

// TestStatesOfGenerators compares lists of many whole numbers: each is one value, so that
// what differs without a restart too is not held against it number by number.
func TestStatesOfGenerators(t *testing.T) {
	state := func(add float64) map[string]any {
		leaves := map[string]any{"w/0": 0.5 + add, "rng/0": 3.0}
		for i := range 624 {
			leaves[fmt.Sprintf("rng/1/%d", i)] = float64(i) + add*float64(i%7)
		}
		return leaves
	}
	differ := diffLeaves(state(0), state(1))
	if len(differ) != 2 || differ[0].Name != "rng/1" && differ[1].Name != "rng/1" {
		t.Errorf("differ %+v, want rng/1 and w/0", differ)
	}
	if differ := diffLeaves(map[string]any{"log_history/5/eval_runtime": 0.0019}, map[string]any{"log_history/5/eval_runtime": 0.0017}); differ != nil {
		t.Errorf("the speeds of runs differ: %+v", differ)
	}
	if differ := diffLeaves(state(1), state(1)); differ != nil {
		t.Errorf("equal ones differ: %+v", differ)
	}
}

// TestNumbersThatAreNone compares NaN, as the "missing" of XGBoost, and
// writes a distance that no number is as JSON.
func TestNumbersThatAreNone(t *testing.T) {
	nan := map[string]any{"missing": math.NaN()}
	if differ := diffLeaves(nan, maps.Clone(nan)); differ != nil {
		t.Errorf("equal ones differ: %+v", differ)
	}
	for name, v := range map[string]float64{`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1)} {
		differ := diffLeaves(map[string]any{"missing": 1.5}, map[string]any{"missing": v})
		if len(differ) != 1 {
			t.Fatalf("1.5 and %v: %+v", v, differ)
		}
		c, _ := diffCurve(map[int64]float64{1: 1.5}, map[int64]float64{1: math.Inf(1)})
		text, err := json.Marshal(&Report{FirstTensor: &differ[0], Runs: []*Result{{Difference: Difference{Curves: []Curve{c}}}}})
		if err != nil || !strings.Contains(string(text), `"max_abs":`+name) || !strings.Contains(string(text), `"max_abs":"Infinity","differ":1`) {
			t.Errorf("%s, %v", text, err)
		}
	}
}
