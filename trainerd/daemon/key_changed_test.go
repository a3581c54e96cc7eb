package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/model"
)

// TestResumeWithOtherKeys resumes jobs with another value of a key that says what the
// weights mean, which is an error though all variables have their shapes, and with other
// values of keys that people change on purpose.
func TestResumeWithOtherKeys(t *testing.T) {
	const family, hidden = "model.family=mlp", "model.hidden=[6]"
	for _, tt := range []struct {
		name  string
		first []string
		then  string
		want  string // the key of the error, "" for none
	}{
		{"activation", []string{family, hidden}, "model.activation=tanh", "model.activation"},
		{"activation by name", []string{family, hidden}, "model.activation=relu", ""},
		{"activation of nothing", nil, "model.activation=tanh", ""},
		{"wide", []string{family, hidden, "model.wide=true"}, "model.wide=false", "model.wide"},
		{"hidden", []string{family, hidden}, "model.hidden=[7]", "model.hidden"},
		{"family", nil, "model.family=linear", "model.family"},
		{"scale", nil, "data.scale=2", "data.scale"},
		{"normalize", nil, "data.normalize=standard", "data.normalize"},
		{"normalize no more", []string{"data.normalize=standard"}, "data.normalize=", "data.normalize"},
		{"normalize otherwise", []string{"data.normalize=standard"}, "data.normalize=minmax", "data.normalize"},
		{"learning rate", nil, "model.learning_rate=0.01", ""},
		{"batch size", nil, "data.batch_size=5", ""},
		{"optimizer", []string{"model.optimizer=adam"}, "model.optimizer=sgd", ""},
		{"dropout", []string{family, hidden}, "model.dropout=0.5", ""},
		{"penalty", nil, "model.l2=0.1", ""},
		{"pool", []string{"model.family=convnet", "model.image=[1,2,1]", "model.filters=[2]", "model.pool=2"}, "model.pool=3", "model.pool"},
		{"image", []string{"model.family=convnet", "model.image=[1,2,1]", "model.filters=[2]", "model.pool=1"}, "model.image=[2,1,1]", "model.image"},
		{"weights of classes", nil, "data.class_weights=balanced", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first := append([]string{"train.steps=2", "eval.steps=0"}, tt.first...)
			c := clustersConfig(t, first...)
			runJob(t, t.Context(), c)
			again := withOverrides(t, c, append(first, "train.steps=4", tt.then)...)
			j, err := newJob(t.Context(), again)
			if err == nil {
				j.close()
			}
			checkKeyChanged(t, err, tt.want)
			if tt.want == "" {
				return
			}
			forgetWeightKeys(t, filepath.Join(c.Logdir, "model.ckpt-2.meta"))
			if j, err = newJob(t.Context(), again); err != nil {
				t.Errorf("from a checkpoint of an older version: %v", err)
			} else {
				j.close()
			}
		})
	}
}

// TestResumeWithOtherKeysAfterDamage has a newest checkpoint that was cut: what the one before it
// was trained with decides, since the job would continue from that.
func TestResumeWithOtherKeysAfterDamage(t *testing.T) {
	first := []string{"train.steps=4", "supervisor.save_model_steps=2", "eval.steps=0", "model.family=mlp", "model.hidden=[6]"}
	c := clustersConfig(t, first...)
	runJob(t, t.Context(), c)
	for _, suffix := range []string{".index", ".meta"} {
		if err := os.Remove(filepath.Join(c.Logdir, "model.ckpt-4") + suffix); err != nil {
			t.Fatal(err)
		}
	}
	j, err := newJob(t.Context(), withOverrides(t, c, append(first, "train.steps=6", "model.activation=tanh")...))
	if err == nil {
		j.close()
	}
	checkKeyChanged(t, err, "model.activation")
}

// TestResumeGraphWithOtherScale does that with an exported graph, whose input is scaled
// before it is fed.
func TestResumeGraphWithOtherScale(t *testing.T) {
	m, err := model.Build(model.Config{Family: "logistic", Inputs: 2})
	if err != nil {
		t.Fatal(err)
	}
	meta := filepath.Join(t.TempDir(), "graph.meta")
	writeMeta(t, meta, m.Meta)
	c := clustersConfig(t)
	text := fmt.Sprintf("logdir = %q\n[data]\nfile = %q\n[graph]\nmeta = %q\nloss = %q\nfeeds = { x = 'features', y = 'label' }\n[train]\nsteps = 2\n",
		c.Logdir, c.Data.File, meta, m.Loss)
	if err := os.WriteFile(c.File(), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	runJob(t, t.Context(), withOverrides(t, c, "data.scale=2"))
	for _, tt := range []struct{ then, want string }{
		{"data.scale=2", ""}, {"data.scale=3", "data.scale"}, {"data.batch_size=3", ""},
	} {
		j, err := newJob(t.Context(), withOverrides(t, c, "train.steps=4", "data.scale=2", tt.then))
		if err == nil {
			j.close()
		}
		checkKeyChanged(t, err, tt.want)
	}
}

func checkKeyChanged(t *testing.T, err error, want string) {
	t.Helper()
	var changed *KeyChangedError
	switch {
	case want == "" && err != nil:
		t.Errorf("resuming: %v", err)
	case want != "" && (!errors.As(err, &changed) || changed.Key != want || ExitCode(err) != ExitConfig):
		t.Errorf("resuming: %v (exit code %d), want an error about %s", err, ExitCode(err), want)
	}
}

// withOverrides loads a config again.
func withOverrides(t *testing.T, c *config.Config, assignments ...string) *config.Config {
	t.Helper()
	var all []config.Override
	for _, a := range assignments {
		all = append(all, config.Override{Flag: "--set", Assignment: a})
	}
	again, err := config.Load(c.File(), all)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// forgetWeightKeys makes the MetaGraph of a checkpoint one of an older version, which does
// not say what its weights mean.
func forgetWeightKeys(t *testing.T, name string) {
	t.Helper()
	wire, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	meta := new(tfpb.MetaGraphDef)
	if err := proto.Unmarshal(wire, meta); err != nil {
		t.Fatal(err)
	}
	delete(meta.CollectionDef, weightKeysCollection)
	writeMeta(t, name, meta)
}

func writeMeta(t *testing.T, name string, meta *tfpb.MetaGraphDef) {
	t.Helper()
	wire, err := proto.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, wire, 0o666); err != nil {
		t.Fatal(err)
	}
}
