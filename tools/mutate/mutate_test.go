package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

// The survivors of a package with known holes in its tests are those holes, but
// for one that is excused; an excuse that none needs is reported.
func TestSurvivors(t *testing.T) {
	p, err := load(filepath.Join("testdata", "module"), ".")
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.build(t.Context(), t.TempDir(), p.dir)
	if err != nil {
		t.Fatal(err)
	}
	o := options{jobs: 2, longest: time.Hour, tests: regexp.MustCompile("")}
	defer b.enterNamespace(t.Context())()
	if err := b.measure(t.Context(), p.mutants, o); err != nil {
		t.Fatal(err)
	}
	excuses := filepath.Join(t.TempDir(), "excused.txt")
	text := "# why\n\nexample.com/planted spread: a - b -> a + b # for the test\nexample.com/planted both: gone -> away # too old\n"
	if err := os.WriteFile(excuses, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	excused, err := excuse.Read(excuses)
	if err != nil {
		t.Fatal(err)
	}
	p.judgeAll(t.Context(), o, excused)
	var out bytes.Buffer
	if p.report(&out, excused, true, true) {
		t.Error("the report is that nothing survives")
	}
	got := out.String()
	for _, want := range []string{
		"planted.go:10: limit: n < 0 -> n <= 0\n",
		"limit: if n < 0 { return 0, errNegative } -> return 0, nil\n",
		"limit: n > 10 -> n >= 10\n",
		"counts: n++ -> left out\n",
		"counts: n++ -> n--\n",
		"not reached: example.com/planted/planted.go:51: untested: ok -> !(ok)\n",
		"excused, but there is no such mutant: example.com/planted both: gone -> away\n",
		"1 excused, 5 not reached by a test\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, killed := range []string{": both:", ": area:", ": spread:", "n > 10 -> !"} {
		if strings.Contains(got, killed) {
			t.Errorf("the report has %q", killed)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// A test that never ends is stopped, with the processes that it has started.
func TestStuck(t *testing.T) {
	b := &binary{dir: t.TempDir(), runs: t.TempDir()}
	defer b.enterNamespace(t.Context())()
	if _, err := b.start(t.Context(), 100*time.Millisecond, 1, "sh", "-c", "sleep 100000 & sleep 100000"); err == nil {
		t.Error("no error")
	}
	if _, err := b.start(t.Context(), time.Minute, 1, "true"); err != nil {
		t.Error(err)
	}
}
