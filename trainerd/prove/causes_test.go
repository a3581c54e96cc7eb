package prove

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// every returns the points of a curve from a step to another.
func every(n, first, last int64, value float64) map[int64]float64 {
	points := map[int64]float64{}
	for step := first; step <= last; step += n {
		points[step] = value
	}
	return points
}

// TestCauses has what single bugs leave in checkpoints and curves.
func TestCauses(t *testing.T) {
	const (
		adam = "optimizer = Adam(net.parameters())"
		norm = "net = Sequential(Linear(8, 8), BatchNorm1d(8))"
	)
	for name, tc := range map[string]struct {
		every    int64 // steps between two reports
		begin    int64 // the first report after the restart from step 20
		tensors  []Tensor
		curves   []Curve
		compared bool
		source   string
		want     string
	}{
		"Adam's counter differs by one": {10, 30, []Tensor{
			{File: "c-30.pt", Name: "optimizer/state/0/exp_avg", Step: 30, MaxAbs: 0.1}, {File: "c-30.pt", Name: "optimizer/state/0/step", Step: 30, MaxAbs: 1},
		}, []Curve{{Tag: "loss", First: 30}}, true, adam, "step off by one"},
		"Adam's counter begins again": {10, 30, []Tensor{
			{File: "c-30.pt", Name: "net/weight", Step: 30, MaxAbs: 0.1}, {File: "c-30.pt", Name: "optimizer/state/0/step", Step: 30, MaxAbs: 20},
		}, []Curve{{Tag: "loss", First: 30}}, true, adam, "optimizer state (moments)"},
		"an update that a scaler left out": {1, 21, []Tensor{
			{File: "c-30.pt", Name: "optimizer/state/0/step", Step: 30, MaxAbs: 1}, {File: "c-30.pt", Name: "net/weight", Step: 30, MaxAbs: 0.1},
		}, []Curve{{Tag: "grad_scale", First: 21}, {Tag: "loss", First: 22}}, true, adam, "loss scaler"},
		"another place within the data": {10, 30, []Tensor{
			{File: "checkpoint-30/rng_state.pth", Name: "cpu", Step: 30, MaxAbs: 2}, {File: "checkpoint-30/trainer_state.json", Name: "epoch", Step: 30, MaxAbs: 0.4},
		}, nil, true, adam, "data order"},
		"a random state that begins again": {10, 30, []Tensor{{File: "checkpoint-30/rng_state.pth", Name: "cpu", Step: 30, MaxAbs: 251}}, nil, true, adam, "random state"},
		"a seed of the order":              {1, 21, []Tensor{{File: "c-30/state.pkl", Name: "seed", Step: 30, MaxAbs: 1}}, []Curve{{Tag: "loss", First: 21}}, true, adam, "shuffle seed"},
		"a key of JAX":                     {1, 21, []Tensor{{File: "c-30.npz", Name: "key", Step: 30, MaxAbs: 1}}, []Curve{{Tag: "loss", First: 21}}, true, adam, "random state"},
		"the steps of a scaler":            {1, 21, []Tensor{{File: "c-30.npz", Name: "good_steps", Step: 30, MaxAbs: 5}}, nil, true, adam, "loss scaler"},
		"running statistics": {1, 21, []Tensor{
			{File: "c-30.pt", Name: "net/1.running_mean", Step: 30, MaxAbs: 0.1}, {File: "c-30.pt", Name: "net/1.num_batches_tracked", Step: 30, MaxAbs: 20},
		}, []Curve{{Tag: "val_loss", First: 30}}, true, norm, "running statistics (BatchNorm)"},
		"running statistics that are not saved": {1, 21, nil, []Curve{{Tag: "val_loss", First: 30}}, true, norm, "running statistics (BatchNorm)"},
		"an average that is not saved":          {1, 21, nil, []Curve{{Tag: "eval/loss", First: 30}}, true, "ema = EMA(net)", "EMA of the weights"},
		"another copy of the weights": {1, 21, []Tensor{{File: "c-30.pt", Name: "slow/weight", Step: 30, MaxAbs: 0.1}},
			[]Curve{{Tag: "val_loss", First: 30}}, true, "slow = copy.deepcopy(net)", "state of the evaluation"},
		"the best and what counts since": {1, 21, []Tensor{
			{File: "c-30/state.pkl", Name: "best_loss", Step: 30, MaxAbs: 0.1}, {File: "c-30/state.pkl", Name: "bad_evals", Step: 30, MaxAbs: 1},
			{File: "c-30/state.pkl", Name: "since", Step: 30, MaxAbs: 1},
		}, nil, true, "net = Dropout(0.1)", "stale best"},
		"a copy of another step": {1, 21, []Tensor{{File: "best/optimizer.bin", Name: "state/0/exp_avg", Step: -1, MaxAbs: 0.1}}, nil, true, adam, "stale best"},
		"the best instead of the newest": {1, 21, []Tensor{
			{File: "c-30/state.pkl", Name: "scale", Step: 30, MaxAbs: 4}, {File: "c-30/scheduler.bin", Name: "last_epoch", Step: 30, MaxAbs: 10},
			{File: "c-30/optimizer.bin", Name: "state/0/step", Step: 30, MaxAbs: 10}, {File: "c-30/model.safetensors", Name: "weight", Step: 30, MaxAbs: 0.1},
		}, []Curve{{Tag: "loss", First: 21}}, true, adam, "stale best"},
		"a smoothed curve":        {1, 21, nil, []Curve{{Tag: "avg_loss", First: 21}}, true, adam, "a curve that is not resumed"},
		"gradients added up":      {1, 21, nil, []Curve{{Tag: "loss", First: 25}}, false, "if step % accum == 0:", "gradients that are added up"},
		"moments":                 {1, 21, nil, []Curve{{Tag: "loss", First: 22}}, false, adam, "optimizer state (moments)"},
		"a schedule of plain SGD": {1, 21, nil, []Curve{{Tag: "loss", First: 22}}, false, "optim.SGD(w, 0.1)\nlr_scheduler.StepLR(2)", "schedule of the learning rate"},
		"order":                   {1, 21, nil, []Curve{{Tag: "loss", First: 21}}, false, "for x in dataset:", "data order"},
		"an epoch begun again": {1, 21, []Tensor{{Step: 100, Reason: "the last checkpoint is of step 105, want 100"}},
			[]Curve{{Tag: "loss", First: 21, Extra: []int64{101, 102, 103, 104, 105}}}, true, adam, "data order"},
		"the scale of Keras' optimizer": {1, 21, []Tensor{
			{File: "c-30.keras", Name: "optimizer/3", Step: 30, MaxAbs: 4}, {File: "best.keras", Name: "optimizer/3", Step: -1, MaxAbs: 4},
		}, nil, true, "model.compile(LossScaleOptimizer(Adam()))", "loss scaler"},
		"one step less": {1, 21, []Tensor{{Step: 100, Reason: "the last checkpoint is of step 95, want 100"}},
			[]Curve{{Tag: "loss", First: 21, Missing: []int64{100}}}, true, adam, "step off by one"},
		"a curve that each start begins late": {10, 30, []Tensor{{File: "c-30.zip", Name: "policy/weight", Step: 30, MaxAbs: 0.1}},
			[]Curve{{Tag: "loss", First: 30}, {Tag: "late", First: 40, Missing: []int64{30}}}, true, "env.reset()", "environment"},
		"a step without a loss": {10, 30, []Tensor{{File: "c-30.zip", Name: "policy/weight", Step: 30, MaxAbs: 0.1}},
			[]Curve{{Tag: "loss", First: 30}, {Tag: "late", First: 50, Missing: []int64{40}}}, true, "env.reset()", "step off by one"},
		"a learning rate that each start reports late": {10, 30, []Tensor{{File: "c-30.zip", Name: "policy/weight", Step: 30, MaxAbs: 0.1}},
			[]Curve{{Tag: "loss", First: 30, Differ: 8}, {Tag: "late/learning_rate", First: -1, Missing: []int64{30}}}, true,
			`model = PPO("MlpPolicy", "CartPole-v1")`, "environment"},
		"a learning rate that lacks a step": {10, 30, []Tensor{{File: "c-30.zip", Name: "policy/weight", Step: 30, MaxAbs: 0.1}},
			[]Curve{{Tag: "loss", First: 30, Differ: 8}, {Tag: "late/learning_rate", First: -1, Missing: []int64{40}}}, true,
			`model = PPO("MlpPolicy", "CartPole-v1")`, "step off by one"},
		"rare reports": {10, 30, nil, []Curve{{Tag: "loss", First: 30}}, false, "for x in dataset:", "data order"},
	} {
		t.Run(name, func(t *testing.T) {
			late := every(tc.every, 2*tc.every, 100, 1)
			reported := curves{"loss": every(tc.every, tc.every, 100, 1), "val_loss": every(10, 10, 100, 1), "late": late}
			if strings.HasPrefix(name, "a learning rate") {
				reported["late/learning_rate"] = late
			}
			e := &evidence{
				Result: &Result{
					Disturbance: &Disturbance{Resumed: 20}, Difference: Difference{tc.tensors, tc.curves},
					restarts: []restart{{0, tc.every}, {20, tc.begin}}, compared: tc.compared,
				},
				reference: &outcome{first: tc.every, last: 100, curves: reported},
				saved:     []int64{10, 100}, source: tc.source,
			}
			if got := e.causes(); got[0].Name != tc.want {
				t.Errorf("causes %+v, want %s", got, tc.want)
			}
		})
	}
}

// TestForgiveReports has differences that show how a program reports, and others.
func TestForgiveReports(t *testing.T) {
	tenth := every(10, 10, 100, 1)
	for name, tc := range map[string]struct {
		points   map[int64]float64 // of the undisturbed run
		run      map[int64]float64
		compared bool
		forgiven bool
	}{
		"a mean that begins again": {tenth, with(tenth, 30, 2), true, true},
		"nothing to compare":       {tenth, with(tenth, 30, 2), false, false},
		"two points":               {tenth, with(with(tenth, 30, 2), 40, 2), true, false},
		"a later point":            {tenth, with(tenth, 40, 2), true, false},
		"each step":                {every(1, 1, 100, 1), with(every(1, 1, 100, 1), 30, 2), true, false},
		"steps since the start":    {tenth, every(10, 25, 95, 1), true, true},
		"a point is missing":       {tenth, every(10, 10, 90, 1), true, false},
	} {
		c, same := diffCurve(tc.points, tc.run)
		if same {
			t.Fatalf("%s: the same", name)
		}
		c.Tag = "loss"
		r := &Result{Difference: Difference{Curves: []Curve{c}}, restarts: []restart{{0, 10}, {20, 30}}, compared: tc.compared}
		tags := r.forgiveReports(curves{"loss": tc.points})
		if forgiven := len(r.Difference.Curves) == 0; forgiven != tc.forgiven || slices.Contains(tags, "loss") != tc.forgiven {
			t.Errorf("%s: forgiven %v (%s), want %v", name, forgiven, strings.Join(tags, " "), tc.forgiven)
		}
	}
}

// TestForgiveOtherSteps has curves of parts of the state: points at other steps show how the
// lines were read where all checkpoints are the same, and another value shows the part.
func TestForgiveOtherSteps(t *testing.T) {
	tenth := every(10, 10, 70, 1)
	for _, tag := range []string{"epoch", "learning_rate", "grad_scale", "ema_loss"} {
		for name, tc := range map[string]struct {
			points, run map[int64]float64
			compared    bool
			want        int
		}{
			"the end, some steps late":     {with(tenth, 75, 3), with(tenth, 77, 3), true, 0},
			"the end, another value":       {with(tenth, 75, 3), with(tenth, 75, 2), true, 1},
			"each step, the last is late":  {every(1, 1, 75, 1), with(every(1, 1, 74, 1), 77, 3), true, 1},
			"nothing that can be compared": {with(tenth, 75, 3), with(tenth, 77, 3), false, 1},
		} {
			c, _ := diffCurve(tc.points, tc.run)
			c.Tag = tag
			r := &Result{Difference: Difference{Curves: []Curve{c}}, restarts: []restart{{0, 10}, {20, 30}}, compared: tc.compared}
			if r.forgiveReports(curves{tag: tc.points}); len(r.Difference.Curves) != tc.want {
				t.Errorf("%s, %s: %d curves differ, want %d", tag, name, len(r.Difference.Curves), tc.want)
			}
		}
	}
}

// TestForgiveClosingMean has single points that differ though the checkpoints are the same.
func TestForgiveClosingMean(t *testing.T) {
	for tag, want := range map[string]bool{
		"train_loss": true, "train/loss": true, "run/train_loss": true, "mean_loss": true,
		"eval_loss": false, "eval/mean_loss": false, "accuracy": false, "loss": false,
	} {
		c, _ := diffCurve(every(100, 1, 100, 1), every(100, 1, 100, 2))
		c.Tag = tag
		r := &Result{Difference: Difference{Curves: []Curve{c}}, restarts: []restart{{0, 10}, {20, 30}}, compared: true}
		r.forgiveReports(curves{tag: every(100, 1, 100, 1)})
		if got := len(r.Difference.Curves) == 0; got != want {
			t.Errorf("%s: forgiven %v, want %v", tag, got, want)
		}
	}
}

// TestExcuseBeforeReports has a path in the checkpoints, which differs in each run, and a
// mean loss at the end, which may differ only where the checkpoints are the same.
func TestExcuseBeforeReports(t *testing.T) {
	args := []Tensor{{File: "checkpoint-10/training_args.bin", Step: 10, Reason: "its bytes differ"}}
	closing, _ := diffCurve(every(100, 100, 100, 1), every(100, 100, 100, 2))
	closing.Tag = "train_loss"
	x := &Result{Difference: Difference{slices.Clone(args), []Curve{closing}}, restarts: []restart{{0, 1}, {5, 6}}, compared: true}
	r := &Report{Runs: []*Result{x}}
	r.excuse(Difference{Tensors: args}, curves{"train_loss": every(100, 100, 100, 1)})
	if !x.Difference.empty() || !slices.Contains(r.Reports, "train_loss") {
		t.Errorf("left: %+v; reports that differ: %v", x.Difference, r.Reports)
	}
}

// with returns points with another value at a step.
func with(points map[int64]float64, step int64, value float64) map[int64]float64 {
	other := maps.Clone(points)
	other[step] = value
	return other
}

// TestRestoredOptimizer has a script with averaged weights, whose optimizer counts its
// updates in the checkpoints: where it counts on, the averages were forgotten.
func TestRestoredOptimizer(t *testing.T) {
	for counter, want := range map[string]string{"optimizer.state.0.step": "EMA of the weights", "bias": "optimizer state (moments)"} {
		dir := t.TempDir()
		head := fmt.Sprintf(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},%q:{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, counter)
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head+"ab"...)
		if err := os.WriteFile(filepath.Join(dir, "c-30.safetensors"), file, 0o666); err != nil {
			t.Fatal(err)
		}
		e := &evidence{
			Result: &Result{
				Disturbance: &Disturbance{Resumed: 20}, restarts: []restart{{0, 1}, {20, 21}},
				Difference: Difference{[]Tensor{{File: "c-30.safetensors", Name: "w", Step: 30, MaxAbs: 0.1}}, []Curve{{Tag: "loss", First: 22}}},
			},
			reference: &outcome{logdir: dir, first: 1, last: 100, curves: curves{"loss": every(1, 1, 100, 1)}},
			saved:     []int64{10, 100}, source: "optimizer = Adam(w)\nema = 0.9 * ema + 0.1 * w",
		}
		if got := e.causes(); got[0].Name != want {
			t.Errorf("with %s the same: causes %+v, want %s", counter, got, want)
		}
	}
}

// TestRestoredRandom has a script with a dropout whose random state is in the checkpoints
// and the same: what differs comes from another generator.
func TestRestoredRandom(t *testing.T) {
	for state, want := range map[string]string{"torch_rng": "random state", "dropout_rng": "random state", "bias": "dropout stream"} {
		dir := t.TempDir()
		head := fmt.Sprintf(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},%q:{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, state)
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head+"ab"...)
		if err := os.WriteFile(filepath.Join(dir, "c-30.safetensors"), file, 0o666); err != nil {
			t.Fatal(err)
		}
		e := &evidence{
			Result: &Result{
				Disturbance: &Disturbance{Resumed: 20}, restarts: []restart{{0, 1}, {20, 21}},
				Difference: Difference{[]Tensor{{File: "c-30.safetensors", Name: "w", Step: 30, MaxAbs: 0.1}}, []Curve{{Tag: "loss", First: 21}}},
			},
			reference: &outcome{logdir: dir, first: 1, last: 100, curves: curves{"loss": every(1, 1, 100, 1)}},
			saved:     []int64{10, 100}, source: "net = Dropout(0.2)\nfor x in data:\n    x += np.random.normal()",
		}
		if got := e.causes(); got[0].Name != want {
			t.Errorf("with %s the same: causes %+v, want %s", state, got, want)
		}
		e.source += "\nloader = DataLoader(data, shuffle=True)" // whose place is likelier to be lost than a generator
		if got, want := e.causes(), strings.Replace(want, "random state", "data order", 1); got[0].Name != want {
			t.Errorf("with %s the same, and a shuffle: causes %+v, want %s", state, got, want)
		}
		e.source, _, _ = strings.Cut(e.source, "\nloader")
		// In a folder, the random state has a file of its own.
		if err := os.Mkdir(filepath.Join(dir, "checkpoint-30"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "c-30.safetensors"), filepath.Join(dir, "checkpoint-30", "more.safetensors")); err != nil {
			t.Fatal(err)
		}
		e.Difference.Tensors = []Tensor{{File: "checkpoint-30/model.safetensors", Name: "weight", Step: 30, MaxAbs: 0.1}}
		if got := e.causes(); got[0].Name != want {
			t.Errorf("in a folder, with %s the same: causes %+v, want %s", state, got, want)
		}
	}
}
