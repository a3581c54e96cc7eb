package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/prove"
)

var proofs = flag.Bool("proofs", false, "prove all programs in "+programsDir)

// programsDir has the trainings that are proven.
const programsDir = "../../trainerd/prove/testdata"

// TestProofs finds every planted bug, by its name, and raises no false alarm.
func TestProofs(t *testing.T) {
	if !*proofs {
		t.Skip("run by `make prove`")
	}
	trainerd := filepath.Join(t.TempDir(), "trainerd")
	if out, err := exec.Command("go", "build", "-o", trainerd, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for bug, cause := range map[string]string{
		"random state": "random state", "data order": "data order", "schedule": "schedule of the learning rate", "moments": "optimizer state (moments)",
		"ema": "EMA of the weights", "off by one": "step off by one", "best": "stale best", "scaler": "loss scaler", "dropout": "dropout stream", "shuffle": "shuffle seed",
	} {
		for script, pattern := range map[string]string{"all.py": "ckpt-*.json"} {
			t.Run(script+"/"+bug, func(t *testing.T) {
				r := proof(t, trainerd, "BUG="+bug, pattern, script)
				if r.Verdict != prove.Differs || len(r.Causes) == 0 || r.Causes[0].Name != cause {
					t.Errorf("verdict %s, causes %+v; want %s", r.Verdict, r.Causes, cause)
				}
			})
		}
	}
	for kind, pattern := range map[string]string{
		"plain": "ckpt-*.json", "from 0": "ckpt-*.json", "last index": "ckpt-*.json", "epochs": "epoch-*.json", "one file": "ckpt.json", "safetensors": "model-*.safetensors",
		"folders": "checkpoint-*", "clock": "ckpt-*.json", "no handler": "ckpt-*.json", "silent": "ckpt-*.json",
		"every tenth": "ckpt-*.json", "means": "ckpt-*.json",
	} {
		t.Run("exact/"+kind, func(t *testing.T) {
			if r := proof(t, trainerd, "KIND="+kind, pattern, "sound.py"); r.Verdict != prove.Same {
				t.Errorf("verdict %s, causes %+v", r.Verdict, r.Causes)
			}
		})
	}
	for script, env := range map[string]string{"all.py": "BUG="} {
		if r := proof(t, trainerd, env, "ckpt-*.json", script); r.Verdict != prove.Same {
			t.Errorf("%s without a bug: verdict %s, causes %+v", script, r.Verdict, r.Causes)
		}
	}
	if r := proof(t, trainerd, "KIND=by chance", "ckpt-*.json", "sound.py"); r.Verdict != prove.Nondeterministic {
		t.Errorf("a training that does not repeat itself: verdict %s", r.Verdict)
	}
}

// proof proves a program.
func proof(t *testing.T, trainerd, env, pattern, script string) *prove.Report {
	t.Helper()
	cmd := exec.Command(trainerd, "prove", "--json", "--set", "child.checkpoints="+pattern, "--", "python3", filepath.Join(programsDir, script))
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := new(prove.Report)
	if err := json.Unmarshal(out, r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// TestProveWithoutTemp says what to do where there is no folder for temporary files, as in a container whose root
// is read-only.
func TestProveWithoutTemp(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"trainerd", "prove", "--", "true"}, nil, io.Discard, &errs); code != daemon.ExitIO || !strings.Contains(errs.String(), "--scratch names another place") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}
