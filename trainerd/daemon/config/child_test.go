package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// loadProgram loads the config of a program.
func loadProgram(t *testing.T, text string, flags ...Override) *Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.toml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, flags)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNodeOfSchedulers has the number of a node said by the config, by a scheduler, or by nobody.
func TestNodeOfSchedulers(t *testing.T) {
	for _, name := range nodeVariables {
		t.Setenv(name, "")
	}
	for _, tc := range []struct {
		text, variable, value string
		want                  int
	}{
		{"nodes = 2\nnode = 0\n", "NODE_RANK", "1", 0},
		{"nodes = 2\n", "NODE_RANK", "0", 0},
		{"nodes = 2\n", "OMPI_COMM_WORLD_RANK", "1", 1},
		{"nodes = 2\n", "JOB_COMPLETION_INDEX", "1", 1},
		{"nodes = 3\n", "SLURM_NODEID", "2", 2},
		{"", "SLURM_NODEID", "1", -1}, // it is the only one
		{"", "", "", -1},
	} {
		t.Run(tc.text+tc.variable, func(t *testing.T) {
			if tc.variable != "" {
				t.Setenv(tc.variable, tc.value)
			}
			c := loadProgram(t, "logdir = \"logs\"\n[child]\ncommand = [\"x\"]\n"+tc.text)
			if c.Child.Node != tc.want {
				t.Errorf("it is node %d, want %d", c.Child.Node, tc.want)
			}
		})
	}
	if got := nodeOfEnvironment(func(string) string { return "first" }); got != -1 {
		t.Errorf("a scheduler that has no numbers makes it node %d", got)
	}
}

// TestProgramsPlace has a program named by a config, and by words after "--": the former runs
// where its config is, and the job has the name of that.
func TestProgramsPlace(t *testing.T) {
	c := loadProgram(t, "logdir = \"logs\"\n[child]\ncommand = [\"python3\", \"train.py\"]\n")
	if c.Name != "job" || c.Child.Dir != filepath.Dir(c.File()) {
		t.Errorf("job %q runs in %q", c.Name, c.Child.Dir)
	}
	c = loadProgram(t, "logdir = \"logs\"\n[child]\ndir = \"below\"\ncommand = [\"x\"]\n")
	if c.Child.Dir != filepath.Join(filepath.Dir(c.File()), "below") {
		t.Errorf("it runs in %q", c.Child.Dir)
	}
	c = loadProgram(t, "logdir = \"logs\"\n", ProgramOverride([]string{"x"}))
	if c.Name != "job" || c.Child.Dir != "" {
		t.Errorf("job %q runs in %q", c.Name, c.Child.Dir)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"train.v2.py", "tool", "data.csv"} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		words                []string
		flags                []Override
		name, logdir, folder string
	}{
		{[]string{"python3", "-u", "train.v2.py", "--lr", "1"}, nil, "train.v2", "logs/train.v2", ""},
		{[]string{"./tool", "train.v2.py", "data.csv"}, nil, "train.v2", "logs/train.v2", ""},
		{[]string{"bin/trainer.sh"}, nil, "trainer", "logs/trainer", ""},
		{[]string{"python3", "missing.py"}, nil, "python3", "logs/python3", ""},
		{[]string{"python3", "train.v2.py"}, []Override{{Flag: "--set", Assignment: `name="a"`}}, "a", "logs/a", ""},
		{[]string{"python3", "train.v2.py"}, []Override{{Flag: "--set", Assignment: `logdir="b"`}}, "train.v2", "b", ""},
	} {
		c, err := Load("", append(tc.flags, ProgramOverride(tc.words)))
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != tc.name || c.Logdir != tc.logdir || c.Child.Dir != tc.folder || !c.IsChild() {
			t.Errorf("%q: job %q in %q, run in %q", tc.words, c.Name, c.Logdir, c.Child.Dir)
		}
	}
}

// TestChildSaveEvery has programs that are asked to save only where the config says so.
func TestChildSaveEvery(t *testing.T) {
	const program = "logdir = \"logs\"\n[child]\ncommand = [\"x\"]\ncheckpoints = \"c-*\"\nsave_signal = \"SIGUSR1\"\n"
	for text, want := range map[string]time.Duration{"": 0, "[supervisor]\nsave_model_secs = 90\n": 90 * time.Second} {
		if got := loadProgram(t, program+text).ChildSaveEvery(); got != want {
			t.Errorf("%q: every %v, want %v", text, got, want)
		}
	}
}
