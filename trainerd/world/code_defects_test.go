//go:build unix

package world

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var plantCode = flag.Bool("code", false, "plant defects in the code, build the worlds with them, and look whether they find them")

// A codeDefect is planted in the code itself, where planted says that it is wanted.
type codeDefect struct {
	name     string
	file     string // below the root of the module
	old, new string
	world    string // the test that finds it
	seed     uint64
}

var codeDefects = []codeDefect{
	{name: "an equal step is taken for nothing to save", file: "trainerd/checkpointer.go", world: "TestDaemonWorld", seed: 1554,
		old: "	if values.Tracks() {\n",
		new: `	if step, err := session.ReadStep(ctx, c.sess, c.globalStep); planted("an equal step is taken for nothing to save") && err == nil && step == current.Step {
		return checkpoint.Unchanged
	}
	if values.Tracks() {
`},
	{name: "the last save is tried once", file: "trainerd/stop.go", world: "TestDaemonWorld", seed: 25,
		old: "attempt == finalAttempts", new: `(attempt == finalAttempts || planted("the last save is tried once"))`},
	{name: "a rewind goes to a checkpoint with the fault", file: "trainerd/rewind.go", world: "TestWorld", seed: 37,
		old: "s >= step", new: `s >= step && !planted("a rewind goes to a checkpoint with the fault")`},
	{name: "a program is given a checkpoint from after the fault", file: "trainerd/child/rewind.go", world: "TestChildWorld", seed: 87,
		old: "return at <= b.good", new: `return at <= b.good || planted("a program is given a checkpoint from after the fault")`},
	{name: "overtaken points stay", file: "trainerd/eventlog/supersede.go", world: "TestDaemonWorld", seed: 8431437954680475207,
		old: "l.superseding = superseding{from, old, map[string]int64{}}", new: `if !planted("overtaken points stay") { l.superseding = superseding{from, old, map[string]int64{}} }`},
	{name: "a logdir that was made again has no events", file: "trainerd/logdir_watch.go", world: "TestDaemonWorld", seed: 87,
		old: "r.events.Restart(", new: `if planted("a logdir that was made again has no events") { return }; r.events.Restart(`},
	{name: "early stopping forgets at a resume", file: "trainerd/daemon/early_stop.go", world: "TestDaemonWorld", seed: 16861446189175316451,
		old: "if r.Metric == e.record.Metric", new: `if !planted("early stopping forgets at a resume") && r.Metric == e.record.Metric`},
	{name: "a checkpoint is passed over after one failure", file: "trainerd/child/attempt.go", world: "TestChildWorld", seed: 78,
		old: "before == nil || !given.Is(before) {", new: `!planted("a checkpoint is passed over after one failure") && (before == nil || !given.Is(before)) {`},
	{name: "a worker ignores a stop", file: "trainerd/child/follower.go", world: "TestChildWorld", seed: 4965,
		old: "			stop, f.stopRequested = nil, time.Now()\n", new: `			stop = nil
			if planted("a worker ignores a stop") {
				continue
			}
			f.stopRequested = time.Now()
`},
	{name: "the state of a node is not sent again", file: "trainerd/child/nodes.go", world: "TestChildWorld", seed: 39009,
		old: "	if n == nil {\n		return true", new: `	if n == nil || planted("the state of a node is not sent again") {
		return true`},
	{name: "a chief does not wait for the other nodes", file: "trainerd/child/await_nodes.go", world: "TestChildWorld", seed: 2,
		old: "	if r.nodes == nil {\n		return\n	}\n	defer logging.Waiting", new: `	if r.nodes == nil || planted("a chief does not wait for the other nodes") {
		return
	}
	defer logging.Waiting`},
	{name: "a cut newest state stays", file: "trainerd/child/found/last_state.go", world: "TestChildWorld", seed: 16260637444217262901,
		old: "	if c.Size == 0 {\n		return true", new: `	if planted("a cut newest state stays") {
		return false
	}
	if c.Size == 0 {
		return true`},
	{name: "failures on a full disk count", file: "trainerd/child/disk_full.go", world: "TestChildWorld", seed: 50158,
		old: "takes := true", new: `takes := true; if planted("failures on a full disk count") { return false }`},
	{name: "early stopping counts steps that are made again twice", file: "trainerd/daemon/early_stop.go", world: "TestDaemonWorld", seed: 16716485725861338687,
		old: "return m.Step > step }", new: `return m.Step > step && !planted("early stopping counts steps that are made again twice") }`},
}

// plantedSource is added to each package with a defect.
const plantedSource = `package %s

import "os"

func planted(name string) bool { return os.Getenv("WORLD_DEFECT") == name }
`

// overlay returns what the compiler is to read in place of files, by their names.
func overlay(defects []codeDefect) (map[string]string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	sources := map[string]string{}
	for _, d := range defects {
		name := filepath.Join(root, filepath.FromSlash(d.file))
		if sources[name] == "" {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			sources[name] = string(text)
		}
		if n := strings.Count(sources[name], d.old); n != 1 {
			return nil, fmt.Errorf("%s: %s has %q %d times, want once", d.name, d.file, d.old, n)
		}
		sources[name] = strings.Replace(sources[name], d.old, d.new, 1)
		dir := filepath.Dir(name)
		sources[filepath.Join(dir, "zz_planted.go")] = fmt.Sprintf(plantedSource, filepath.Base(dir))
	}
	return sources, nil
}

// buildWith builds the tests of this package with other sources.
func buildWith(t *testing.T, sources map[string]string) (binary string) {
	t.Helper()
	work := t.TempDir()
	replace := map[string]string{}
	for name, text := range sources {
		replace[name] = filepath.Join(work, fmt.Sprint(len(replace), ".go"))
		if err := os.WriteFile(replace[name], []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(list, text, 0o666); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(work, "world.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building with the defects: %v\n%s", err, out)
	}
	return binary
}

// Each defect that is planted in the code is found. Without -code only the table is
// checked: building takes a minute.
func TestCodeDefectsAreFound(t *testing.T) {
	sources, err := overlay(codeDefects)
	if err != nil {
		t.Fatal(err)
	}
	if !*plantCode {
		t.Skip("needs -code")
	}
	binary := buildWith(t, sources)
	for _, d := range codeDefects {
		t.Run(d.name, func(t *testing.T) {
			run := func(planted string) ([]byte, error) {
				cmd := exec.Command(binary, "-test.run", "^"+d.world+"$", "-seed", fmt.Sprint(d.seed))
				cmd.Env = append(os.Environ(), "WORLD_DEFECT="+planted)
				return cmd.CombinedOutput()
			}
			if out, err := run(d.name); err == nil || !bytes.Contains(out, []byte("RULE BROKEN")) {
				t.Errorf("seed %d of %s does not find it: %v\n%s", d.seed, d.world, err, out)
			}
			if out, err := run(""); err != nil {
				t.Errorf("seed %d of %s breaks a rule without the defect too: %v\n%s", d.seed, d.world, err, out)
			}
		})
	}
}
