package doc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// causes are the command lines that bring about what exit-codes.md has codes for. The
// words are separated by blanks; FULL is a full disk as the output.
var causes = map[string][]string{
	"a flag that does not exist":               {"trainerd run --nope", "trainerd ls --nope", "ckpt ls --nope", "ckpt cat --nope", "tfevents ls --nope", "tfevents plot --nope"},
	"a command that does not exist":            {"trainerd nope", "ckpt nope", "tfevents nope"},
	"help about a command that does not exist": {"trainerd help nope", "ckpt help nope", "tfevents help nope"},
	"an argument is missing":                   {"trainerd run", "trainerd predict", "trainerd set", "ckpt ls", "ckpt cat", "tfevents export", "tfevents edit"},
	"the file or folder does not exist": {"trainerd graph none.meta", "trainerd graph run none.meta --fetch x", "trainerd status none", "trainerd predict none data.csv", "trainerd ls none",
		"ckpt ls none", "ckpt stat none", "ckpt verify none", "ckpt cat none x", "ckpt rm none", "ckpt latest none", "tfevents ls none", "tfevents cat none", "tfevents verify none", "tfevents export none"},
	"the config does not exist":               {"trainerd run none.toml", "trainerd check none.toml"},
	"the data do not exist":                   {"trainerd run job.toml --set data.file=none.csv", "trainerd check job.toml --set data.file=none.csv", "trainerd init none.csv"},
	"a key of the config that does not exist": {"trainerd run job.toml --set zzz=1", "trainerd check job.toml --set train.stpes=1"},
	"a field of the data is invalid":          {"trainerd run job.toml --set data.file=bad.csv", "trainerd check job.toml --set data.file=bad.csv"},
	"a damaged file": {"trainerd graph bad.meta", "ckpt ls bad.index", "ckpt stat bad.index", "ckpt verify bad.index", "ckpt cat bad.index x",
		"tfevents ls bad.tfevents.1", "tfevents cat bad.tfevents.1", "tfevents verify bad.tfevents.1", "tfevents export bad.tfevents.1"},
	"the address to listen at is none": {"trainerd run job.toml --listen nope", "tfevents serve --logdir=empty --port=99999"},
	"the output is full": {"trainerd check job.toml FULL", "trainerd version FULL", "trainerd FULL", "trainerd --help FULL", "trainerd run --help FULL", "trainerd --version FULL", "trainerd status ended FULL",
		"ckpt maps FULL", "ckpt man FULL", "ckpt FULL", "ckpt help ls FULL",
		"tfevents man FULL", "tfevents FULL", "tfevents help ls FULL", "tfevents verify bad.tfevents.1 FULL"},
	"nothing runs there": {"trainerd status empty", "trainerd save empty", "trainerd stop empty"},
}

// codeTable returns the codes of the page, by cause and command.
func codeTable(t *testing.T) map[string]map[string]int {
	t.Helper()
	text, err := os.ReadFile("exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "| cause | trainerd | ckpt | tfevents |\n")
	codes := make(map[string]map[string]int)
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			break
		}
		cause := strings.TrimSpace(cells[1])
		for i, command := range []string{"trainerd", "ckpt", "tfevents"} {
			if code, err := strconv.Atoi(strings.TrimSpace(cells[2+i])); err == nil {
				if codes[cause] == nil {
					codes[cause] = make(map[string]int)
				}
				codes[cause][command] = code
			}
		}
	}
	return codes
}

// TestExitCodes brings about each cause of the table of exit-codes.md.
func TestExitCodes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the commands")
	}
	buildCommands(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"data.csv": "a,label\n1,0\n2,1\n3,0\n4,1\n", "bad.csv": "a,label\n1,0\nx,1\n3,0\n4,1\n", "bad.meta": "\x00\xff", "bad.index": strings.Repeat("x", 100),
		"bad.tfevents.1": strings.Repeat("x", 100),
		"job.toml":       "logdir = 'logs'\n[data]\nfile = 'data.csv'\nheader = true\n[model]\nfamily = 'softmax'\n[train]\nsteps = 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "ended"), 0o777); err != nil {
		t.Fatal(err)
	}
	if code, said := exitCode(t, dir, "trainerd run job.toml --logdir ended"); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	table := codeTable(t)
	if len(table) != len(causes) {
		t.Errorf("the page has %d causes, the test %d", len(table), len(causes))
	}
	for cause, lines := range causes {
		tried := make(map[string]bool)
		for _, line := range lines {
			command := strings.Fields(line)[0]
			tried[command] = true
			if want, ok := table[cause][command]; !ok {
				t.Errorf("%s: the page has no code of %s", cause, command)
			} else if got, said := exitCode(t, dir, line); got != want {
				t.Errorf("%s: %s: exit code %d, want %d; it said: %s", cause, line, got, want, said)
			}
		}
		for command := range table[cause] {
			if !tried[command] {
				t.Errorf("%s: nothing is tried with %s", cause, command)
			}
		}
	}
}

// exitCode runs a command line.
func exitCode(t *testing.T, dir, line string) (code int, said string) {
	t.Helper()
	line, full := strings.CutSuffix(line, " FULL")
	words := strings.Fields(line)
	var stderr strings.Builder
	cmd := exec.Command(filepath.Join(commandsDir, words[0]), words[1:]...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	if full {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skipf("%s: there is no full disk here: %v", line, err)
		}
		defer f.Close()
		cmd.Stdout = f
	}
	_ = cmd.Run() // the code says it
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(stderr.String())
}
