package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// warmSettings train one step so small that the values show where it began.
func warmSettings(more ...string) []string {
	return append([]string{"train.steps=1", "model.learning_rate=1e-30", `model.optimizer="adam"`}, more...)
}

func values(t *testing.T, prefix, name string) []float64 {
	t.Helper()
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, err := r.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ckptfmt.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	var list []float64
	for _, f := range v {
		list = append(list, float64(f))
	}
	return list
}

func near(a, b []float64, most float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if d := a[i] - b[i]; d > most || d < -most {
			return false
		}
	}
	return true
}

// written makes a file of a checkpoint, changed.
func written(t *testing.T, from, to string, change func(s *rewrite.Source) error) string {
	t.Helper()
	s, err := rewrite.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := errors.Join(change(s), rewrite.Write(t.Context(), s, to, nil)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A new job begins with values of another's checkpoint, in whatever form.
func TestWarmStart(t *testing.T) {
	first := clustersConfig(t, `model.optimizer="adam"`)
	runJob(t, t.Context(), first)
	prefix := filepath.Join(first.Logdir, "model.ckpt-40")
	kernel := "logits/kernel"
	want := values(t, prefix, kernel)
	dir := t.TempDir()
	dotted := written(t, prefix, filepath.Join(dir, "w.safetensors"), func(s *rewrite.Source) error {
		return errors.Join(s.DropOptimizer(), s.Rename(func(name string) string { return "net." + strings.ReplaceAll(name, "/", ".") }), s.Cast(tfpb.DataType_DT_BFLOAT16))
	})
	averages := written(t, prefix, filepath.Join(dir, "averages"), func(s *rewrite.Source) error {
		return s.Rename(func(name string) string {
			if name == kernel {
				return name + "/ExponentialMovingAverage"
			}
			return name
		})
	})
	rules := filepath.Join(dir, "rules.toml")
	if err := os.WriteFile(rules, []byte("separator = ['.', '/']\nrest = 'drop'\n[[rule]]\nfrom = 'net\\.(.*)'\nto = '$1'\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, settings := range map[string][]string{
		"prefix":           {"warm_start.from=" + prefix},
		"folder":           {"warm_start.from=" + first.Logdir},
		"map, other type":  {"warm_start.from=" + dotted, "warm_start.map=" + rules},
		"averages":         {"warm_start.from=" + averages, "warm_start.averages=true"},
		"kernel alone":     {"warm_start.from=" + prefix, `warm_start.include=["kernel$"]`},
		"all but the bias": {"warm_start.from=" + prefix, `warm_start.exclude=["bias"]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustersConfig(t, warmSettings(settings...)...)
			var plan bytes.Buffer
			j, err := newJob(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			s, err := j.probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.describeWarmStart(t.Context(), &plan, s), s.sess.Close()); err != nil {
				t.Fatal(err)
			}
			j.close()
			if !strings.Contains(strings.Join(strings.Fields(plan.String()), " "), " taken "+kernel) {
				t.Errorf("the plan is\n%s", plan.String())
			}
			if _, log := runJob(t, t.Context(), c); !strings.Contains(log, "warm start") {
				t.Errorf("the log is\n%s", log)
			}
			most := 1e-6
			if strings.Contains(name, "type") {
				most = 0.02
			}
			if got := values(t, filepath.Join(c.Logdir, "model.ckpt-1"), kernel); !near(got, want, most) {
				t.Errorf("began with %v, want %v", got, want)
			}
		})
	}
}

// What the checkpoint lacks is an error, or is initialised; a job that has
// checkpoints of its own continues from these.
func TestWarmStartMissing(t *testing.T) {
	first := clustersConfig(t)
	runJob(t, t.Context(), first)
	prefix := filepath.Join(first.Logdir, "model.ckpt-40")
	part := written(t, prefix, filepath.Join(t.TempDir(), "part"), func(s *rewrite.Source) error {
		return s.Keep(func(name string) bool { return !strings.Contains(name, "bias") })
	})
	c := clustersConfig(t, "warm_start.from="+part)
	err := Run(t.Context(), c, RunOptions{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Again: "again"})
	var missing *checkpoint.WarmStartError
	if !errors.As(err, &missing) || len(missing.Differences) != 1 || !strings.Contains(err.Error(), "bias") || ExitCode(err) != ExitConfig {
		t.Errorf("without a bias: %v, exit code %d", err, ExitCode(err))
	}
	c = clustersConfig(t, "warm_start.from="+part, `warm_start.missing="init"`)
	if _, log := runJob(t, t.Context(), c); !strings.Contains(log, "variable is initialised") || !strings.Contains(log, "initialised=1") {
		t.Errorf("the log is\n%s", log)
	}
	var out bytes.Buffer
	again := []config.Override{{Flag: "--set", Assignment: "logdir=" + c.Logdir}, {Flag: "--set", Assignment: "warm_start.from=" + part}}
	if err := Check(t.Context(), filepath.Join(filepath.Dir(c.Logdir), "job.toml"), again, &out); err != nil || !strings.Contains(out.String(), "the job continues from") {
		t.Errorf("check: %v\n%s", err, out.String())
	}
	other := clustersConfig(t, warmSettings("warm_start.from="+prefix, `model.family="mlp"`, "model.hidden=[3]")...)
	if err := Run(t.Context(), other, RunOptions{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Again: "again"}); err == nil {
		t.Error("a checkpoint of another shape was taken")
	}
}
