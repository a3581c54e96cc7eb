package doc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A guide is a page whose blocks marked "console" are run, in their order, by
// one shell. A line that begins with "$ " is a command, one with "> " continues
// it, and the others are its output: "..." matches any text in a line, and alone
// in a line any lines; columns may be wider or narrower. A command whose output
// is not shown may print anything. What cannot be run everywhere is marked "sh".

// block is a part of a page in ``` marks.
type block struct {
	line int
	kind string
	text string
}

// step is a command of a guide.
type step struct {
	line    int
	command string
	want    []string
}

var fence = regexp.MustCompile("(?m)^```(\\w*)\n((?s:.*?))^```$")

func blocks(t *testing.T, page string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fence.FindAllSubmatchIndex(text, -1) {
		line := bytes.Count(text[:m[0]], []byte("\n")) + 2
		all = append(all, block{line, string(text[m[2]:m[3]]), string(text[m[4]:m[5]])})
	}
	return all
}

func pages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	if err != nil || len(names) == 0 {
		t.Fatal("no pages", err)
	}
	more, err := filepath.Glob("formats/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(names, more...)
}

// steps returns the commands of a page.
func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	for _, b := range blocks(t, page) {
		if b.kind != "console" {
			continue
		}
		for i, text := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
			command, begins := strings.CutPrefix(text, "$ ")
			more, continues := strings.CutPrefix(text, "> ")
			switch {
			case begins:
				all = append(all, step{line: b.line + i, command: command})
			case i == 0:
				t.Fatalf("%s:%d: the block does not begin with a command", page, b.line)
			case continues && len(all[len(all)-1].want) == 0:
				all[len(all)-1].command += "\n" + more
			default:
				all[len(all)-1].want = append(all[len(all)-1].want, text)
			}
		}
	}
	return all
}

// patience is how long a guide or program may take, on a machine with much else to do.
const patience = 20 * time.Minute

// commandsDir has the commands, built once.
var commandsDir string

func TestMain(m *testing.M) { os.Exit(withCommands(m)) }

func withCommands(m *testing.M) int {
	dir, err := os.MkdirTemp("", "doc-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	commandsDir = dir
	return m.Run()
}

func buildCommands(t *testing.T) {
	t.Helper()
	build := exec.Command("go", "build", "-o", commandsDir+string(filepath.Separator), "../cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the commands: %v\n%s", err, out)
	}
}

// TestGuides runs all guides.
func TestGuides(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the guides are for a POSIX shell")
	}
	if testing.Short() {
		t.Skip("builds and runs the commands")
	}
	buildCommands(t)
	for _, page := range pages(t) {
		all := steps(t, page)
		if len(all) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(page, ".md"), func(t *testing.T) {
			t.Parallel()
			runGuide(t, page, all)
		})
	}
}

// mark ends what a command has printed, before its exit code.
const mark = "\x01end "

// optional are programs of pages that a machine may lack. The page is skipped
// there; -v, and `make test`, say so.
var optional = []string{"python3", "od", "dd"}

// lacking returns a program that a page runs and that is not there, "" for none.
func lacking(all []step) string {
	for _, program := range optional {
		word := regexp.MustCompile(`(^|\s)` + program + `\s`)
		if _, err := exec.LookPath(program); err != nil && slices.ContainsFunc(all, func(s step) bool { return word.MatchString(s.command) }) {
			return program
		}
	}
	return ""
}

// watched are functions in the place of the commands: an invalid command line,
// whose exit code is 2, is noted in $INVALID even if the guide expects a failure.
func watched() string {
	var b strings.Builder
	for _, name := range []string{"trainerd", "ckpt", "tfevents"} {
		fmt.Fprintf(&b, "%[1]s() { command %[1]s \"$@\"; set -- $? \"$*\"; [ $1 != 2 ] || echo \"%[1]s $2\" >>\"$INVALID\"; return $1; }\n", name)
	}
	return b.String()
}

func runGuide(t *testing.T, page string, all []step) {
	if program := lacking(all); program != "" {
		if os.Getenv("INTEROP") == "required" {
			t.Fatalf("%s runs %s, which is not there, and INTEROP=required makes that a failure", page, program)
		}
		t.Skipf("%s is left out: it runs %s, which is not there", page, program)
	}
	invalid := filepath.Join(t.TempDir(), "invalid")
	var script strings.Builder
	script.WriteString(watched())
	for _, s := range all {
		fmt.Fprintf(&script, "{ %s\n} 2>&1; printf '\\001end %%d\\n' $?\n", s.command)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-c", script.String())
	sh.Dir = workplace(t)
	sh.Env = append(os.Environ(), "PATH="+commandsDir+string(filepath.ListSeparator)+os.Getenv("PATH"), "COLUMNS=100", "INVALID="+invalid)
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if lines, err := os.ReadFile(invalid); err == nil {
		t.Errorf("%s has invalid command lines:\n%s", page, lines)
	}
	rest := string(out)
	for _, s := range all {
		printed, after, ok := strings.Cut(rest, mark)
		code, after, _ := strings.Cut(after, "\n")
		rest = after
		switch {
		case !ok:
			t.Fatalf("%s:%d: the shell has ended at: %s\n%s", page, s.line, s.command, printed)
		case code != "0":
			t.Errorf("%s:%d: exit code %s: %s\n%s", page, s.line, code, s.command, printed)
		case len(s.want) > 0 && !matches(s.want, strings.Split(strings.TrimRight(printed, "\n"), "\n")):
			t.Errorf("%s:%d: %s\nprints\n%s\nwant\n%s", page, s.line, s.command, printed, strings.Join(s.want, "\n"))
		}
	}
}

// workplace is a folder like the repository, as far as guides use it.
func workplace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// matches holds lines against what is wanted.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matches(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && linePattern(want[0]).MatchString(got[0]) && matches(want[1:], got[1:])
}

var blanks = regexp.MustCompile(" +")

func linePattern(want string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(strings.TrimRight(want, " "))
	quoted = strings.ReplaceAll(quoted, `\.\.\.`, ".*")
	return regexp.MustCompile("^" + blanks.ReplaceAllString(quoted, " +") + `\s*$`)
}

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		want, got string
		ok        bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "a|b", false}, {"a|...", "a|b|c", true}, {"...|c", "a|b|c", true},
		{"...|b|...", "a|c", false}, {"a ... c", "a bb c", true}, {"a ... c", "a c", false}, {"step N", "step 3", false}, {"...", "", true},
		{"a  b", "a b", true}, {"a b", "a   b", true}, {"a b", "ab", false},
	} {
		if got := matches(strings.Split(tc.want, "|"), strings.Split(tc.got, "|")); got != tc.ok {
			t.Errorf("matches(%q, %q) = %v", tc.want, tc.got, got)
		}
	}
}

// elsewhere are programs that are not there everywhere, or change the machine.
var elsewhere = []string{"tensorboard", "python", "python3", "systemctl", "journalctl", "sudo", "pip", "make", "git", "curl", "kill", "ssh", "rsync", "go", "apt", "dnf", "docker", "install", "systemd-analyze"}

// TestShellBlocks makes sure that commands which can be run are run: what is
// marked "sh" needs something from elsewhere.
func TestShellBlocks(t *testing.T) {
	for _, page := range pages(t) {
		if page == "performance.md" || page == "service.md" || page == "systemd.md" || page == "cluster.md" {
			continue // pages about other machines
		}
		for _, b := range blocks(t, page) {
			if b.kind != "sh" {
				continue
			}
			for i, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
				first, rest, _ := strings.Cut(line, " ")
				if first == "trainerd" || strings.Contains(first, "=") { // which may start something from elsewhere
					first, _, _ = strings.Cut(rest, " ")
				}
				if !slices.Contains(elsewhere, first) {
					t.Errorf("%s:%d: %q can be run: make it a console block", page, b.line+i, line)
				}
			}
		}
	}
}

// TestPrograms builds the Go programs of all pages.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.kind != "go" || !strings.HasPrefix(b.text, "package main") {
				continue
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "main.go")
			if err := os.WriteFile(file, []byte(b.text), 0o666); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "program"), file).CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %v\n%s", page, b.line, err, out)
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			run := exec.CommandContext(ctx, filepath.Join(dir, "program"))
			run.Dir = dir
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %v\n%s", page, b.line, err, out)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// TestLinks makes sure that what a page points to is there.
func TestLinks(t *testing.T) {
	for _, page := range append(pages(t), "../README.md", "../examples/child/README.md", "../examples/graph/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), string(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// TestIndex makes sure that every page is in the index.
func TestIndex(t *testing.T) {
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		if page != "README.md" && !bytes.Contains(index, []byte("]("+filepath.ToSlash(page)+")")) {
			t.Errorf("README.md does not link to %s", page)
		}
	}
}

// TestInvalidCommandLines makes sure that a guide cannot hide one.
func TestInvalidCommandLines(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the guides are for a POSIX shell")
	}
	dir := t.TempDir()
	program := "#!/bin/sh\nexit \"$1\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ckpt"), []byte(program), 0o777); err != nil {
		t.Fatal(err)
	}
	invalid := filepath.Join(dir, "invalid")
	sh := exec.Command("sh", "-c", watched()+`ckpt 3 || echo "exit code $?"; ckpt 2 || echo "exit code $?"; ckpt 2 'a b' | cat; ckpt 0 && echo fine`)
	sh.Env = append(os.Environ(), "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "INVALID="+invalid)
	out, err := sh.CombinedOutput()
	if want := "exit code 3\nexit code 2\nfine\n"; err != nil || string(out) != want {
		t.Errorf("the commands print %q, %v; want %q", out, err, want)
	}
	noted, err := os.ReadFile(invalid)
	if want := "ckpt 2\nckpt 2 a b\n"; err != nil || string(noted) != want {
		t.Errorf("noted %q, %v; want %q", noted, err, want)
	}
}

// TestLackingPrograms leaves a page out for a program that is not there.
func TestLackingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for command, want := range map[string]string{
		"trainerd run -- python3 train.py": "python3", "ckpt ls python3dir": "", "head -c 4 f | od -c": "od", "ckpt cp a b": "",
	} {
		if got := lacking([]step{{command: command}}); got != want {
			t.Errorf("%s lacks %q, want %q", command, got, want)
		}
	}
}
