package prove

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestParts has names of tensors as frameworks save them.
func TestParts(t *testing.T) {
	for _, tc := range []struct {
		file, name string
		want       *part
	}{
		{"ckpt-1.pt", "model/layers.0.weight", partWeights},
		{"ckpt-1.pt", "optimizer/state/0/exp_avg", partOptimizer},
		{"model.ckpt-1.index", "dense/kernel/Adam_1", partOptimizer},
		{"model.ckpt-1.index", "beta1_power", partOptimizer},
		{"model.ckpt-1.index", "dense/kernel/ExponentialMovingAverage", partEMA},
		{"model.ckpt-1.index", "dense/kernel", partWeights},
		{"model.ckpt-1.index", "global_step", partStep},
		{"checkpoint-1/optimizer.pt", "state/0/x", partOptimizer},
		{"checkpoint-1/optimizer.pt", "state.0.step", partOptimizer},
		{"last.ckpt", "optimizer_states.0.state.3.step", partOptimizer},
		{"ckpt-1.pt", "opt/state/12/step", partOptimizer},
		{"checkpoint-1/trainer_state.json", "global_step", partStep},
		{"checkpoint-1/scheduler.pt", "last_epoch", partSchedule},
		{"checkpoint-1/rng_state.pth", "cpu", partRandom},
		{"checkpoint-1/scaler.pt", "_growth", partScaler},
		{"best.pt", "w", partBest},
		{"ckpt-1.pt", "ema/0", partEMA},
		{"ckpt-1.pt", "model_avg.weight", partEMA},
		{"ckpt-1.pt", "optimizer/state/0/exp_avg", partOptimizer},
		{"ckpt-1.pt", "scale", partScaler},
		{"ckpt-1.pt", "batch_norm.scale_weight", partWeights},
		{"ckpt-1.pt", "dropout_rng/1/624", partDropout},
		{"ckpt-1.pt", "sampler/perm", partShuffle},
		{"ckpt-1.pt", "data/cursor", partData},
		{"ckpt-1.pt", "lr", partSchedule},
		{"ckpt-1.pt", "step", partStep},
		{"ckpt-1.bin", "", partWeights},
	} {
		if got := (&Tensor{File: tc.file, Name: tc.name}).part(); got != tc.want {
			t.Errorf("%s of %s is %s, want %s", tc.name, tc.file, got.name, tc.want.name)
		}
	}
}

func TestCurvesOfTheClock(t *testing.T) {
	for tag, want := range map[string]bool{
		"global_step/sec": true, "time": true, "step_time": true, "train_runtime": true, "train_samples_per_second": true, "mfu": true, "tok/sec": true, "eta": true,
		"elapsed_time_per_iteration": true, "loss": false, "val/loss": false, "lr": false, "epoch": false, "accuracy": false, "sentiment": false,
	} {
		if got := ofTheClock().MatchString(tag); got != want {
			t.Errorf("%s depends on the clock: %v, want %v", tag, got, want)
		}
	}
}

// TestOffByOne has runs that resume at the right step, and next to it, for each way to
// count steps and to name checkpoints.
func TestOffByOne(t *testing.T) {
	for _, tc := range []struct {
		name               string
		first, last, saved int64 // of the undisturbed run
		resumed, begin     int64
		every              int64 // steps between two reports; 0 for 1
		want               bool
		but                string
	}{
		{"from 1", 1, 100, 100, 20, 21, 0, false, ""},
		{"from 1, a step twice", 1, 100, 100, 20, 20, 0, true, ""},
		{"from 1, a step left out", 1, 100, 100, 20, 22, 0, true, ""},
		{"from 0, names count", 0, 99, 100, 20, 20, 0, false, ""},
		{"from 0, names count, a step twice", 0, 99, 100, 20, 19, 0, true, ""},
		{"from 0, names are the last step", 0, 99, 99, 19, 20, 0, false, ""},
		{"from 0, names are the last step, a step twice", 0, 99, 99, 19, 19, 0, true, ""},
		{"names of another kind", 1, 100, 10, 5, 7, 0, false, ""},
		{"every tenth", 10, 100, 100, 15, 20, 10, false, ""},
		{"every tenth, saved with a report", 10, 100, 100, 20, 30, 10, false, ""},
		{"every tenth, a step twice", 10, 100, 100, 20, 20, 10, true, ""},
		{"every tenth since the start", 10, 100, 100, 15, 25, 10, false, ""},
		{"every tenth, the last is saved", 10, 100, 100, 100, 101, 10, false, ""},
		{"from 1, the loss does not differ", 1, 100, 100, 20, 20, 0, false, "same loss"},
		{"from 0 to the last inclusive, saves first", 0, 100, 100, 20, 20, 0, false, "saves first"},
		{"from 0 to the last inclusive, saves first, a step twice", 0, 100, 100, 20, 19, 0, true, "saves first"},
		{"every tenth, saves first", 0, 100, 100, 20, 20, 10, false, "saves first"},
	} {
		points := map[int64]float64{}
		for step := tc.first; step <= tc.last; step += max(tc.every, 1) {
			points[step] = 1
		}
		e := &evidence{
			Result:    &Result{Disturbance: &Disturbance{Resumed: tc.resumed}},
			reference: &outcome{first: tc.first, last: tc.last, curves: curves{"loss": points}}, saved: []int64{1, tc.saved}, begin: tc.begin, seen: map[*part]string{},
			training: []Curve{{Tag: "loss", First: tc.begin}}, saveFirst: tc.but == "saves first",
		}
		if tc.but == "same loss" {
			e.training[0].First++
		}
		if got := e.offByOne(); (got != nil) != tc.want {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func TestDiffCurve(t *testing.T) {
	a := map[int64]float64{1: 1, 2: math.NaN(), 3: 3}
	for _, tc := range []struct {
		name string
		b    map[int64]float64
		want Curve
		same bool
	}{
		{"same", map[int64]float64{1: 1, 2: math.NaN(), 3: 3}, Curve{First: -1}, true},
		{"a value", map[int64]float64{1: 1, 2: math.NaN(), 3: 3.5}, Curve{First: 3, MaxAbs: 0.5, Differ: 1}, false},
		{"missing", map[int64]float64{1: 1, 3: 3}, Curve{First: -1, Missing: []int64{2}}, false},
		{"extra", map[int64]float64{1: 1, 2: math.NaN(), 3: 3, 4: 4}, Curve{First: -1, Extra: []int64{4}}, false},
		{"none", nil, Curve{First: -1, Missing: []int64{1, 2, 3}}, false},
	} {
		got, same := diffCurve(a, tc.b)
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(Curve{})); diff != "" || same != tc.same {
			t.Errorf("%s: same %v; (-want +got):\n%s", tc.name, same, diff)
		}
	}
}

func TestStates(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		t.Helper()
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{a, b} {
		write(dir, "ckpt-10.json", `{"w": [1, 2], "n": "x", "t": null}`)
		write(dir, "trainerd.lock", dir)
		write(dir, "damaged/ckpt-15.json", dir)
		write(dir, "events.out.tfevents.1", dir)
		write(dir, "checkpoint-5/model.bin", "bytes")
	}
	write(a, "ckpt-20.json", `{"w": [1, 2], "n": "x"}`)
	write(b, "ckpt-20.json", `{"w": [1, 2.5], "n": "y", "more": 1}`)
	write(b, "ckpt-7.json", `{}`)
	var got []string
	for _, d := range diffStates(a, b, "ckpt-*.json") {
		got = append(got, d.File+" "+d.Name+" "+d.Reason)
	}
	if want := []string{"ckpt-20.json n another value", "ckpt-20.json w/1 2.5, want 2", "ckpt-20.json more one run does not have it"}; !slices.Equal(got, want) {
		t.Errorf("differences %q, want %q", got, want)
	}
	write(b, "ckpt-30.json", `{}`)
	if all := diffStates(a, b, "ckpt-*.json"); len(all) != 4 || all[3].Reason != "the last checkpoint is of step 30, want 20" {
		t.Errorf("differences %+v", all)
	}
	if name, _ := damageNewest(a, "ckpt-*.json"); name == "" || name == "damaged/ckpt-15.json" {
		t.Errorf("damaged %q", name)
	}
}

// The names of the runs' own folders in checkpoints are not a difference.
func TestPathsOfRuns(t *testing.T) {
	dir := t.TempDir()
	write := func(run, text string) string {
		t.Helper()
		full := filepath.Join(dir, run, "checkpoint-10", "trainer_state.json")
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(strings.ReplaceAll(text, "LOGDIR", filepath.Join(dir, run))), 0o666); err != nil {
			t.Fatal(err)
		}
		return full
	}
	a := write("undisturbed", `{"best_model_checkpoint": "LOGDIR/checkpoint-5", "best_metric": 0.5}`)
	if differ := diffFiles(a, write("kill-1", `{"best_model_checkpoint": "LOGDIR/checkpoint-5", "best_metric": 0.5}`)); differ != nil {
		t.Errorf("the same: %+v", differ)
	}
	if differ := diffFiles(a, write("kill-1", `{"best_model_checkpoint": "LOGDIR/checkpoint-10", "best_metric": 0.5}`)); len(differ) != 1 {
		t.Errorf("another best: %+v", differ)
	}
}

// The elements of an array of text are excused together.
func TestExcuseElements(t *testing.T) {
	x := &Result{Difference: Difference{Tensors: []Tensor{{File: "c-10.json", Name: "w.0/1/2", MaxAbs: 0.5}, {File: "c-10.json", Name: "best", MaxAbs: 1}}}}
	(&Report{Runs: []*Result{x}}).excuse(Difference{Tensors: []Tensor{{File: "c-20.json", Name: "w.0/1/2", MaxAbs: 1e-9}, {File: "c-20.json", Name: "w.0/0/0", MaxAbs: 0.1}}}, nil)
	if left := x.Difference.Tensors; len(left) != 1 || left[0].Name != "best" {
		t.Errorf("left: %+v", left)
	}
}

func TestStepOf(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          int64
	}{
		{"step_*", "step_20/random_states_0.pkl", 20},
		{"step_*", "step_20/model/custom_checkpoint_1.pkl", 20},
		{"checkpoint-*", "checkpoint-5/model-00001-of-00002.safetensors", 5},
		{"run/*.pt", "run/ckpt-30.pt", 30},
		{"", "checkpoint-5/model.safetensors", 5},
		{"ckpt-*", "best.pt", -1},
	} {
		if got := stepOf(tc.pattern, tc.name); got != tc.want {
			t.Errorf("%s of %q has step %d, want %d", tc.name, tc.pattern, got, tc.want)
		}
	}
}

// The seed of a training that does not repeat itself is named if the script makes it at
// each start.
func TestSeedOfStart(t *testing.T) {
	for source, want := range map[string]string{
		"SEED = int(time.time())\nshuffle(data, SEED)": partShuffle.name,
		"TrainingArguments(output_dir=os.environ['TRAINERD_LOGDIR'], per_device_train_batch_size=8, seed=3, data_seed=int(time.time()))": partShuffle.name,
		"torch.manual_seed(int.from_bytes(os.urandom(4)))": partRandom.name,
		"# seed = time.time()\nseed = 7\nt = time.time()":  "",
	} {
		got := ""
		if found := (&evidence{source: source}).seedOfStart(); len(found) > 0 {
			got = found[0].Name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

// TestReportOfOtherSteps has checkpoints of other steps: no tensor is named.
func TestReportOfOtherSteps(t *testing.T) {
	var b strings.Builder
	r := &Report{Verdict: Differs, FirstStep: -1, FirstTensor: &Tensor{Step: 90, Reason: "the last checkpoint is of step 91, want 90"}}
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "what differs:               the last checkpoint is of step 91, want 90\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}
