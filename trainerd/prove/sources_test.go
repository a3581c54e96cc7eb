package prove

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestStatesAreTheProgramsOwn has a program that saves over its only checkpoint, a copy of
// which trainerd keeps in a folder whose name has numbers.
func TestStatesAreTheProgramsOwn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ckpt.pt", "trainerd.copies/0152f8af6d595a88/ckpt.pt", "trainerd.manifests/ckpt-7.pt.json"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("weights"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got := statesIn(dir, "ckpt.pt"); !slices.Equal(got, []string{"ckpt.pt"}) {
		t.Errorf("states %v, want that of the program", got)
	}
	if got := stepsOfStates(dir, "ckpt.pt"); len(got) > 0 {
		t.Errorf("steps %v, want none", got)
	}
	if got, _ := damageNewest(dir, "ckpt.pt"); got != "ckpt.pt" {
		t.Errorf("cut %q short, want ckpt.pt", got)
	}
}

// TestDrawn has scripts that differ in the first step after a restart: what they draw while
// they train comes first, and not what they make once, nor a dropout of nothing.
func TestDrawn(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"data that is made once":  {"x = torch.randn(640, 32)\nloader = DataLoader(x)\nfor batch in loader:\n    step(batch)", "data order"},
		"batches that are drawn":  {"def get_batch():\n    ix = torch.randint(len(data), (8,))\ndrop = Block(dropout=0.0)", "random state"},
		"a dropout of nothing":    {"net = Block(32, dropout=0.0, bias=True)\nattn_dropout: 0\nfor x in loader:\n    y = net(x)", "data order"},
		"nanoGPT's configuration": {"dropout = 0.0 # for pretraining 0 is good\n    dropout: float = 0.0\n        self.drop = nn.Dropout(config.dropout)\nfor x in loader:", "data order"},
		"its default":             {"net = Sequential(Linear(3, 3), nn.Dropout())\nfor x in loader:\n    y = net(x)", "dropout stream"},
		"a dropout":               {"net = Block(32, dropout=0.05)\nfor x in loader:\n    y = net(x)", "dropout stream"},
		"a layer of it":           {"net = Sequential(Linear(3, 3), Dropout(0.1))\nfor x in loader:\n    y = net(x)", "dropout stream"},
		"a generator":             {"rng = np.random.default_rng(1)\ntrain(data, rng)", "random state"},
		"a loop in a line":        {"for i in range(9): x = random.random(); train(x, data)", "random state"},
		"samples of rows":         {"params = {'subsample': 0.5}\ntrain(params, data)", "random state"},
	} {
		e := &evidence{
			Result: &Result{
				Disturbance: &Disturbance{Resumed: 20}, restarts: []restart{{0, 1}, {20, 21}}, Difference: Difference{Curves: []Curve{{Tag: "loss", First: 21}}},
			},
			reference: &outcome{first: 1, last: 100, curves: curves{"loss": every(1, 1, 100, 1)}}, saved: []int64{10, 100}, source: tc.source,
		}
		if got := e.causes(); got[0].Name != tc.want {
			t.Errorf("%s: causes %+v, want %s", name, got, tc.want)
		}
	}
}

// TestBeginsWithOthers has undisturbed runs that differ: from the first step on, because each
// begins with other weights, or by what they round.
func TestBeginsWithOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		other map[int64]float64
		want  bool
	}{
		"other weights":        {every(1, 1, 100, 0.7), true},
		"the first rounded":    {every(1, 1, 100, 1+1e-7), false},
		"from a later step on": {with(every(1, 1, 100, 1), 9, 2), false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ckpt-20.json"), []byte(`{"w": 1}`), 0o666); err != nil {
			t.Fatal(err)
		}
		reference := &outcome{logdir: dir, first: 1, last: 100, curves: curves{"loss": every(1, 1, 100, 1)}}
		noise := Difference{Curves: diffCurves(reference.curves, curves{"loss": tc.other})}
		r := &Report{Runs: []*Result{{Disturbance: &Disturbance{Kind: Kill, Step: 9, Resumed: 5}, Difference: noise}}}
		r.excuse(noise, reference.curves)
		r.judge(&proof{Options: Options{Pattern: "ckpt-*.json"}, reference: reference})
		if got := len(r.Causes) > 0 && r.Causes[0].Name == partRandom.name; r.Verdict != Nondeterministic || got != tc.want {
			t.Errorf("%s: %s, causes %+v, want one: %v", name, r.Verdict, r.Causes, tc.want)
		}
	}
}

// TestCountLost has names that count saves, steps or nothing: the first report after the
// restart says what was lost.
func TestCountLost(t *testing.T) {
	for name, tc := range map[string]struct {
		saved                       []int64
		resumed, begin              int64
		wantResumed, wantLost, last int64
	}{
		"saves":                    {[]int64{1, 2, 20}, 11, 221, 220, 20, 400},
		"steps":                    {[]int64{20, 40, 400}, 220, 221, 220, 20, 400},
		"steps, one left out":      {[]int64{20, 40, 400}, 220, 222, 220, 20, 400},
		"saves, begun again":       {[]int64{1, 2, 20}, 11, 1, 0, 240, 400},
		"no number":                {nil, 0, 221, 220, 20, 400},
		"few checkpoints at first": {[]int64{100}, 100, 101, 100, 140, 400},
	} {
		r := &Result{Disturbance: &Disturbance{Step: 240, Resumed: tc.resumed, Lost: 240 - tc.resumed}, restarts: []restart{{0, 1}, {tc.resumed, tc.begin}}}
		r.countLost(&outcome{first: 1, last: tc.last, curves: curves{"loss": every(1, 1, tc.last, 1)}}, tc.saved)
		if d := r.Disturbance; d.Resumed != tc.wantResumed || d.Lost != tc.wantLost {
			t.Errorf("%s: resumed from %d, lost %d, want %d and %d", name, d.Resumed, d.Lost, tc.wantResumed, tc.wantLost)
		}
	}
}

// TestPlaceInData has a program that resumes exactly at the end of an epoch, and not within
// one, whatever else its script could have forgotten.
func TestPlaceInData(t *testing.T) {
	for _, every := range []int64{1, 10} {
		e := &evidence{
			Result: &Result{
				Disturbance: &Disturbance{Resumed: 20}, restarts: []restart{{0, every}, {20, 20 + every}}, Difference: Difference{Curves: []Curve{{Tag: "loss", First: 20 + every}}},
			},
			reference: &outcome{first: every, last: 100, curves: curves{"loss": evenly(every, 100)}}, saved: []int64{10, 100}, exact: 1,
			source: "optimizer = Adam(lr)\nnet = Dropout(0.1)\nfor x in loader:\n    x += np.random.normal()",
		}
		if got := e.causes(); len(got) != 1 || got[0].Name != partData.name {
			t.Errorf("reports every %d steps: causes %+v, want %s alone", every, got, partData.name)
		}
	}
}

// evenly returns the points of a curve that is reported every so many steps.
func evenly(n, last int64) map[int64]float64 { return every(n, n, last, 1) }

// TestMovedReports has a program that saves in the middle of a rollout, which it begins again:
// its constant learning rate has other steps, too, and is not a cause.
func TestMovedReports(t *testing.T) {
	undisturbed, again := every(256, 256, 12032, 0.5), every(256, 256, 2048, 0.5)
	for step := int64(2256); step < 12032; step += 256 {
		again[step] = 0.5
	}
	differ := diffCurves(curves{"train/loss": undisturbed, "train/learning_rate": undisturbed}, curves{"train/loss": again, "train/learning_rate": again})
	e := &evidence{
		Result: &Result{
			Disturbance: &Disturbance{Step: 2048, Resumed: 2000}, restarts: []restart{{0, 256}, {2000, 2256}}, Difference: Difference{Curves: differ},
		},
		reference: &outcome{first: 256, last: 12032, curves: curves{"train/loss": undisturbed, "train/learning_rate": undisturbed}},
		saved:     []int64{1000, 12000}, source: "model = PPO('MlpPolicy', env, seed=0)",
	}
	if got := e.causes(); got[0].Name != partData.name {
		t.Errorf("causes %+v, want %s", got, partData.name)
	}
}

// TestUnreadCheckpoints has archives that nobody can read, and that differ between undisturbed
// runs: that two of them differ says nothing, and so it does not show that a run is the same.
func TestUnreadCheckpoints(t *testing.T) {
	for other, want := range map[string]bool{"notes.txt": false, "net-20.npz": true} {
		dirs := []string{t.TempDir(), t.TempDir()}
		for i, dir := range dirs {
			for name, text := range map[string]string{"ckpt-20.zip": string(rune('a' + i)), other: "same"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		x := &Result{Disturbance: &Disturbance{Resumed: 10}, logdir: dirs[1], compared: true}
		p := &proof{Options: Options{Pattern: "ckpt-*.zip"}, reference: &outcome{logdir: dirs[0]}, report: &Report{Runs: []*Result{x, {}}}}
		if p.compareWithout(p.compare(dirs[1]).Tensors); x.compared != want {
			t.Errorf("with %s: there is a checkpoint to compare: %v, want %v", other, x.compared, want)
		}
	}
}

// TestOneFileBegunAgain has a program that saves over one file: each run was disturbed before
// it had saved, and began again, which proves nothing. A disturbance waits for the file.
func TestOneFileBegunAgain(t *testing.T) {
	for resumed, want := range map[int64]Verdict{0: Unproven, 20: Same} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ckpt.pt"), []byte("weights"), 0o666); err != nil {
			t.Fatal(err)
		}
		p := &proof{Options: Options{Pattern: "ckpt.pt"}, reference: &outcome{logdir: dir, first: 1, last: 100, curves: curves{"loss": every(1, 1, 100, 1)}}}
		r := &Report{Runs: []*Result{{Disturbance: &Disturbance{Kind: Kill, Step: 30, Resumed: resumed}}}}
		if r.judge(p); r.Verdict != want {
			t.Errorf("resumed from %d: %s, want %s", resumed, r.Verdict, want)
		}
		if m := p.moment(rand.New(rand.NewPCG(1, 2)), Kill); m.saved != 1 {
			t.Errorf("a disturbance waits for %d checkpoints, want 1", m.saved)
		}
	}
}
