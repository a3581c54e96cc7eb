package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ckpt": main})
}

// The stories in testdata use checkpoints that TensorFlow wrote, from
// $FIXTURES. The command `exits` runs ckpt and checks its exit code.
func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", fixtures)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "copydir": copyDir, "damage": damage, "lock": lock, "record": record},
	})
}

// exits CODE ARGS...: ckpt ARGS ends with that code.
func exits(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) < 2 {
		ts.Fatalf("usage: exits CODE ARGS...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec("ckpt", words[1:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != words[0] {
		ts.Fatalf("ckpt %s: exit code %d, want %s", strings.Join(words[1:], " "), code, words[0])
	}
}

// copyDir is copydir FROM TO: it copies the files of a directory.
func copyDir(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) != 2 {
		ts.Fatalf("usage: copydir FROM TO")
	}
	ts.Check(os.CopyFS(ts.MkAbs(words[1]), os.DirFS(ts.MkAbs(words[0]))))
}

func TestEveryCommandIsDocumented(t *testing.T) {
	for _, c := range newApp(nil, nil).Commands {
		if c.Usage == "" || c.ArgsUsage == "" || c.Action == nil {
			t.Errorf("%s: no usage", c.Name)
		}
		names := []string{}
		for _, f := range c.Flags {
			names = append(names, f.Names()...)
		}
		slices.Sort(names)
		if len(slices.Compact(names)) != len(names) {
			t.Errorf("%s: a flag twice in %q", c.Name, names)
		}
	}
}

func TestRenames(t *testing.T) {
	for _, c := range []struct{ rules, name, want string }{
		{"s/a/b/", "a/a", "b/a"},
		{"s/a/b/g", "a/a", "b/b"},
		{"s|/|.|g", "a/b/c", "a.b.c"},
		{`s/(\w)(\d)/\2x\1/`, "k1/k2", "1xk/k2"},
		{"s/(a)/${1}${1}/g", "aba", "aabaa"},
		{"s/^/net-/ s/net-x/y/", "x", "y"},
		{"s/z/y/", "x", "x"},
		{`s/a\/b/c/`, "x/a/b", "x/c"},
		{`s/a/b\/c/`, "a", "b/c"},
		{`s/\/$//`, "a/", "a"},
		{`s|a\|b|x\|y|g`, "a|b b", "x|y b"},
		{`s$a\$b$x\$1$`, "a$b", "x$1"},
		{`s/(.)\\/x/`, `a\b`, "xb"},
		{`s·a·b·`, "aa", "ba"},
		{`s.a\.b.c.g`, "a.b.axb", "c.axb"},
		{`s/"a\xff"/"b\xfe$1"/`, "a\xff", "b\xfe$1"},
		{`s/"a"/b/`, "aa", "aa"},
	} {
		rename, err := renames(strings.Fields(c.rules))
		if err != nil {
			t.Fatal(err)
		}
		if got := rename.apply(c.name); got != c.want {
			t.Errorf("%s: %s became %s, want %s", c.rules, c.name, got, c.want)
		}
	}
	for _, bad := range []string{"", "s", "s/a/b", "s/a/b/c/", "s/a/b/x", "s/(/b/", "a", `s/a\/b/`, `s\a\b\`, "s/a/b/g/", `s/a/b\`} {
		var usage *cliargs.UsageError
		if _, err := renames([]string{bad}); !errors.As(err, &usage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The lock file has the name that package trainerd gives it.
func TestLockIsTrainerds(t *testing.T) {
	sources, err := filepath.Glob("../../trainerd/logdir/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), `LockFile = "`+lockName+`"`) {
			return
		}
	}
	t.Errorf("package logdir has no lock file %s", lockName)
}
