package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// demo runs one race of testdata/demo and returns the rows of its table.
func demo(t *testing.T, args ...string) (rows []string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	err = run(t.Context(), "testdata", append(args, "demo"), &out, &log)
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| contestant") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	t.Logf("%s%s", &out, &log)
	return rows, err
}

func TestTable(t *testing.T) {
	rows, err := demo(t, "-rounds", "2", "-race", "speed", "-python", "no-such-interpreter")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"| ours | 2 | 2 | 2 | | | | | ours |",
		"| slow | 8 | 8 | 8 | 4× | 4× | 4× | 4× | met |",
		"| near | 3 | 3 | 3 | 1.5× | 1.5× | 1.5× | 4× | missed |",
		"| absent | | | | | | | | not installed |",
		"| no interpreter | | | | | | | | not installed |",
		"| bound | 1 | 1 | 1 | 0.5× | 0.5× | 0.5× |  | limit |",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

// TestAlso checks that a race has a table for each measure, and a bar, if any, in
// the first alone.
func TestAlso(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the race chooses its CPUs")
	}
	rows, err := demo(t, "-rounds", "1", "-race", "also")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"| ours | 1 | 1 | 1 | | | | | ours |",
		"| limit | 2 | 2 | 2 | 2× | 2× | 2× | 3× | missed |",
		"| ours | 1 | 1 | 1 | | | | | ours |",
		"| limit | 1 | 1 | 1 | 1× | 1× | 1× |  | limit |",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

// TestUnprepared checks that a race whose preparation is not installed is named, and
// is no failure.
func TestUnprepared(t *testing.T) {
	var out, log bytes.Buffer
	if err := run(t.Context(), "testdata", []string{"-race", "unprepared", "demo"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if want := "### unprepared\n\nnot run, preparing: not installed: demo: told to fail\n"; !strings.Contains(out.String(), want) {
		t.Errorf("output %q, want %q", &out, want)
	}
}

// TestResultsOfAFailedRace checks that what was measured before a contestant fails is in
// the log: a race may take hours.
func TestResultsOfAFailedRace(t *testing.T) {
	var out, log bytes.Buffer
	if err := run(t.Context(), "testdata", []string{"-race", "crash", "demo"}, &out, &log); err == nil {
		t.Fatal("the race has not failed")
	}
	if want := "\n  seconds 1\n"; !strings.Contains(log.String(), want) {
		t.Errorf("log %q, want %q in it", &log, want)
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ race, err, row string }{
		{"cheat", "no ratio: idler", "| idler | 1 | 1 | 1 | | | | | other work: less |"},
		{"crash", "broken: exit status 3\ndemo: told to fail", ""},
		{"unmeasured", `the metric "p99_ns" was not measured`, ""},
		{"nothing", `no race is named "nothing"`, ""},
	} {
		t.Run(tc.race, func(t *testing.T) {
			rows, err := demo(t, "-rounds", "1", "-race", tc.race)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
			if tc.row != "" && (len(rows) != 2 || rows[1] != tc.row) {
				t.Errorf("rows %q, want %q", rows, tc.row)
			}
		})
	}
}

// TestSharedRuns checks that what prepares is run once, and that a race with
// the commands of another one takes its results.
func TestSharedRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the races choose their CPUs")
	}
	races, err := readConfig("testdata/demo/bench.toml", "")
	if err != nil {
		t.Fatal(err)
	}
	races = races[1:4] // rate, runs, cpus
	dir := t.TempDir()
	var log bytes.Buffer
	r := newDemoRunner(t, dir, &log)
	var rows []string
	for _, race := range races {
		o, err := r.outcome(t.Context(), race)
		if err != nil {
			t.Fatal(err)
		}
		for i := range race.Contestants {
			row, _, err := race.row(o, i)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		}
	}
	want := []string{
		"6 | 6 | 6 | | | | | ours",
		"2 | 2 | 2 | 3× | 3× | 3× | 3× | met",
		"2 | 3 | 4 | | | | | ours", // one byte is prepare's
		"0 | 0 | 0 | 0× | 0× | 0× |  | ",
		"1 | 1 | 1 | | | | | ours",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(log.String(), "preparing"); n != 1 {
		t.Errorf("prepared %d times, want once", n)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "run-*")); err != nil || left != nil {
		t.Errorf("folders of runs are left: %v, %v", left, err)
	}
}

// newDemoRunner returns a runner of three rounds with the program of
// testdata/demo.
func newDemoRunner(t *testing.T, dir string, log *bytes.Buffer) *runner {
	t.Helper()
	r := &runner{o: options{rounds: 3}, log: log, tmp: dir, done: make(map[string]*outcome), data: make(map[string]string)}
	if err := r.build(t.Context(), "testdata/demo"); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWorkArguments(t *testing.T) {
	races, err := readConfig("testdata/demo/bench.toml", "speed")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		short bool
		want  []string
	}{
		{false, []string{"py", "/area/x.py", "pytorch", "/tmp/a", "2", "-n", "1000"}},
		{true, []string{"py", "/area/x.py", "pytorch", "/tmp/a", "2", "-n", "1"}},
	} {
		r := &runner{o: options{python: "py", torch: "pytorch", short: tc.short}, area: "/area"}
		got := r.expand(races[0], []string{"{python}", "{area}/x.py", "{torch}", "{tmp}", "{round}"}, "/tmp/a", "", 2)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReadConfigRefuses(t *testing.T) {
	const ours = "\n[[race.contestant]]\nname = \"ours\"\ncommand = [\"x\"]\n"
	for _, tc := range []struct{ name, text, err string }{
		{"unknown key", "[[race]]\nname = \"a\"\nspeed = 1" + ours, "unknown key race.speed"},
		{"no name", "[[race]]" + ours, "no name"},
		{"twice", "[[race]]\nname = \"a\"" + ours + "[[race]]\nname = \"a\"" + ours, "two races"},
		{"better", "[[race]]\nname = \"a\"\nbetter = \"longer\"" + ours, "want \"less\" or \"more\""},
		{"no contestant", "[[race]]\nname = \"a\"", "no contestant"},
		{"no command", "[[race]]\nname = \"a\"\n[[race.contestant]]\nname = \"ours\"", "no command"},
		{"own bar", "[[race]]\nname = \"a\"" + ours + "bar = 2", "no bar"},
		{"no TOML", "[[race", "expected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), configName)
			if err := os.WriteFile(file, []byte(tc.text), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := readConfig(file, ""); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
		})
	}
}

func TestParseResult(t *testing.T) {
	for _, tc := range []struct{ name, out, err string }{
		{"fine", "loading\n{\"work\":\"a\",\"seconds\":1,\"metrics\":{\"x\":2}}\n", ""},
		{"nothing", "", "no result"},
		{"words", "done", "no result"},
		{"no work", `{"seconds":1}`, "what work"},
		{"unknown member", `{"work":"a","second":1}`, "no result"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := parseResult([]byte(tc.out))
			if tc.err == "" && (err != nil || r.Work != "a" || r.Metrics["x"] != 2) {
				t.Errorf("got %+v, %v", r, err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
		})
	}
}

func TestRatio(t *testing.T) {
	for _, tc := range []struct {
		ours, theirs float64
		better       string
		want         string
	}{
		{2, 8, betterLess, "4"},
		{8, 2, betterLess, "0.25"},
		{8, 2, betterMore, "4"},
		{0, 0, betterLess, "1"},
		{0, 3, betterLess, "∞"},
		{1, 1234.5, betterLess, "1234"},
	} {
		if got := number(ratio(tc.ours, tc.theirs, tc.better)); got != tc.want {
			t.Errorf("ratio(%g, %g, %s) = %s, want %s", tc.ours, tc.theirs, tc.better, got, tc.want)
		}
	}
	if got, want := spreadOf([]float64{4, 1, 3, 2}), (spread{1, 2.5, 4}); got != want {
		t.Errorf("spread %v, want %v", got, want)
	}
}
