package daemon

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/session"
)

// stepped makes three steps of a job and returns its variables. The learning
// rate is fed, unless it is 0.
func stepped(t *testing.T, rate float64, overrides ...string) map[string][]byte {
	t.Helper()
	j, err := newJob(t.Context(), clustersConfig(t, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	sess, err := j.sessions.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if _, err := sess.Run(t.Context(), nil, nil, j.program.Init); err != nil {
		t.Fatal(err)
	}
	fed := make(program.Feed)
	if rate != 0 {
		rates, err := j.program.LearningRates()
		if err != nil || len(rates) == 0 {
			t.Fatalf("learning rates %v, %v", rates, err)
		}
		for _, r := range rates {
			fed[r.Tensor] = rateOf(r.DType, rate)
		}
	}
	for step := range int64(3) {
		feeds := make(program.Feed)
		if err := j.input.Feed(step, feeds); err != nil {
			t.Fatal(err)
		}
		maps.Copy(feeds, fed)
		if _, err := sess.Run(t.Context(), feeds, nil, j.program.Train); err != nil {
			t.Fatal(err)
		}
	}
	return variables(t, sess)
}

func variables(t *testing.T, sess session.Session) map[string][]byte {
	t.Helper()
	store, ok := sess.(session.VariableStore)
	if !ok {
		t.Fatal("the session has no variables")
	}
	var names []string
	all, err := store.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		names = append(names, info.Name)
	}
	snap, err := store.Snapshot(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string][]byte)
	for i, tensor := range snap.Tensors {
		values[names[i]] = tensor.Data
	}
	return values
}

// A learning rate that is set has the effect of one in the config.
func TestRates(t *testing.T) {
	for _, optimizer := range model.Optimizers {
		t.Run(optimizer, func(t *testing.T) {
			with := func(rate float64) []string {
				return []string{"model.optimizer=" + optimizer, fmt.Sprintf("model.learning_rate=%v", rate)}
			}
			want := stepped(t, 0, with(0.01)...)
			if diff := cmp.Diff(want, stepped(t, 0.01, with(0.5)...)); diff != "" {
				t.Errorf("the variables differ: %s", diff)
			}
			if cmp.Equal(want, stepped(t, 0, with(0.5)...)) {
				t.Error("the rate has no effect at all")
			}
		})
	}
}

// One that follows a schedule is replaced by a constant.
func TestRatesOfSchedule(t *testing.T) {
	want := stepped(t, 0, "model.optimizer=adam", "model.learning_rate=0.01")
	got := stepped(t, 0.01, "model.optimizer=adam", "model.learning_rate=0.5", "model.schedule=exponential", "model.decay_steps=1", "model.decay_rate=0.5")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the variables differ: %s", diff)
	}
}

func TestIsRateName(t *testing.T) {
	for name, want := range map[string]bool{
		"learning_rate": true, "opt/lr": true, "Adam/learning_rate:0": true, "learning_rate_1": false, "color": false, "": false,
	} {
		if got := isRateName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if value := rateOf(ckptfmt.Scalar(int64(1)).DType, 1); value != nil || !strings.Contains(rateOf(ckptfmt.Scalar(float64(1)).DType, 1).DType.String(), "DOUBLE") {
		t.Error("learning rates have the wrong types")
	}
}
