package doc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestReadme types what README.md prints, line by line, as somebody does who has a
// clone, Go and the usual commands, but neither git nor python3: the commands in
// its blocks, and those in `marks` within its text. One whose code is in notTyped
// is left out. The home is new; only Go's caches are this machine's, to save time.

const readme = "../README.md"

// notTyped has the commands of README.md that the test does not run, and why.
var notTyped = map[string]string{
	"make test": "runs this test",
	"go install github.com/trainerd/trainerd/cmd/...@latest": "installs what is published, not this; TestInstallable checks what it asks of the module",
	"bin/trainerd tensorboard logs/digits":                   "runs TensorBoard",
	"make package":                                           "takes minutes; make package-test runs it",
	"trainerd status":                                        "is the name of a command",
}

// answers has what some of the commands print.
var answers = map[string]string{
	"make run":                                `test accuracy: 0\.9\d+\n(.*\n)*next:\n`,
	"make":                                    `make run +the main job`,
	"trainerd init titanic.csv":               `survived +category .* label: 2 classes\n(.*\n)*wrote titanic.toml`,
	"trainerd run titanic.toml":               `test accuracy: 0\.\d+\n(.*\n)*next:\n`,
	"trainerd predict logs/titanic new.csv":   `^prediction,probability_no,probability_yes\n(no|yes),0\.\d+,0\.\d+\n(no|yes),`,
	"trainerd ls logs":                        `logs/titanic +completed(.*\n)*`,
	"trainerd run --logdir logs/a --set 'chi": `job is complete: the program has succeeded at step 30`,
}

// typed is a command of README.md.
type typed struct {
	line    int
	command string
}

var (
	inline  = regexp.MustCompile("`([^`\n]+)`")
	program = regexp.MustCompile(`^(bin/)?(trainerd|ckpt|tfevents|make|go)( |$)`)
	remark  = regexp.MustCompile(` +#.*$`)
	another = regexp.MustCompile(`# or, in a clone: (.*)$`)
)

// readmeCommands returns the commands of README.md, in their order.
func readmeCommands(text string) (all []typed) {
	for i, line := range strings.Split(text, "\n") {
		if block, ok := strings.CutPrefix(line, "    "); ok {
			all = append(all, typed{i + 1, remark.ReplaceAllString(block, "")})
			if m := another.FindStringSubmatch(block); m != nil {
				all = append(all, typed{i + 1, m[1]})
			}
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(line, -1) {
			if m[1] == "make" || strings.Contains(m[1], " ") && program.MatchString(m[1]) {
				all = append(all, typed{i + 1, m[1]})
			}
		}
	}
	return all
}

func TestReadme(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("builds the commands in a copy of the repository, with make and a POSIX shell")
	}
	for _, program := range []string{"make", "go", "git"} {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("INTEROP") != "required" {
			t.Skipf("README.md is left out: %v", err)
		}
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	n := newNewcomer(t)
	left, said := make(map[string]bool), make(map[string]bool)
	for _, c := range readmeCommands(string(text)) {
		if _, ok := notTyped[c.command]; ok {
			left[c.command] = true
			continue
		}
		out := n.types(t, fmt.Sprintf("README.md:%d", c.line), c.command)
		for begin, want := range answers {
			if c.command == begin || len(begin) > 35 && strings.HasPrefix(c.command, begin) {
				said[begin] = true
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("README.md:%d: %s\nprints\n%s\nwant a match of %s", c.line, c.command, out, want)
				}
			}
		}
	}
	for command := range notTyped {
		if !left[command] {
			t.Errorf("%q is not in README.md; remove it from notTyped", command)
		}
	}
	for command := range answers {
		if !said[command] {
			t.Errorf("%q is not in README.md; change answers", command)
		}
	}
}

// newcomer is somebody on a new machine.
type newcomer struct {
	clone, home, shims string
	env                []string
}

// usual are the commands of every machine that has Go and make. Nothing else is in
// the newcomer's PATH.
var usual = strings.Fields("sh go make cat cp mkdir rm ls install uname env date sleep mv ln chmod touch head tail sort tr wc expr printf test true false dirname basename awk")

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	dir := t.TempDir()
	n := &newcomer{clone: filepath.Join(dir, "trainerd"), home: filepath.Join(dir, "home"), shims: filepath.Join(dir, "programs")}
	copyRepository(t, n.clone)
	path := filepath.Join(dir, "path")
	for _, d := range []string{n.home, n.shims, path} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range usual {
		if file, err := exec.LookPath(name); err == nil {
			symlink(t, file, filepath.Join(path, name))
		}
	}
	symlink(t, filepath.Join(path, "sh"), filepath.Join(n.shims, "python3"))
	for name, data := range readersFiles() {
		if err := os.WriteFile(filepath.Join(n.home, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	prefix := filepath.Join(n.home, ".local")
	n.env = []string{"HOME=" + n.home, "PATH=" + path + ":" + filepath.Join(prefix, "bin"), "PREFIX=" + prefix, "STEPS=2000", "COLUMNS=100",
		"GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE"), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN=local"}
	return n
}

func symlink(t *testing.T, file, name string) {
	t.Helper()
	if err := os.Symlink(file, name); err != nil {
		t.Fatal(err)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// copyRepository copies what git has, or would have with the next commit.
func copyRepository(t *testing.T, to string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Skipf("README.md is left out: not in a clone: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from, file := filepath.Join("..", name), filepath.Join(to, name)
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted and not yet committed, or a link
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o777)
		}
		if err == nil {
			err = os.WriteFile(file, data, info.Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// types runs a command as a user types it, and what it says to type next.
func (n *newcomer) types(t *testing.T, place, command string) string {
	t.Helper()
	dir, env := n.home, n.env
	if strings.HasPrefix(command, "make") || strings.HasPrefix(command, "bin/") {
		dir = n.clone
	}
	if strings.Contains(command, " python3 ") { // the reader's own program, here one of the shell
		env = append(env, "PATH="+n.shims+":"+strings.TrimPrefix(n.env[1], "PATH="))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-c", command)
	sh.Dir, sh.Env = dir, env
	var out, errs bytes.Buffer
	sh.Stdout, sh.Stderr = &out, &errs
	if err := sh.Run(); err != nil {
		t.Fatalf("%s: %s: %v\n%s%s", place, command, err, &out, &errs)
	}
	if _, after, ok := strings.Cut(out.String(), "\nnext:\n"); ok && !strings.Contains(command, " init ") {
		for line := range strings.Lines(after) {
			if next := strings.TrimSpace(line); strings.HasPrefix(line, "  ") && !strings.Contains(next, " tensorboard ") {
				n.types(t, place+" says next", next)
			}
		}
	}
	return out.String()
}

// readersFiles are those that README.md takes for given.
func readersFiles() map[string]string {
	var table strings.Builder
	table.WriteString("Name,Class,Sex,Age,Fare,survived\n")
	for i := range 240 {
		sex, age, alive := "male", fmt.Sprint(18+i*7%50), "no"
		if i%3 == 1 {
			sex = "female"
		}
		if i%11 == 4 {
			age = ""
		}
		if (sex == "female") != (i%17 == 2) {
			alive = "yes"
		}
		fmt.Fprintf(&table, "\"Doe, Mx. %d\",%d,%s,%s,%d.25,%s\n", i, 1+i*5%3, sex, age, 7+i*13%90, alive)
	}
	return map[string]string{
		"titanic.csv": table.String(),
		"new.csv":     "Sex,Age,Fare,Class\nfemale,30,80.5,1\nmale,,7.25,3\n",
		"train.py": `i=1; while [ $i -le 30 ]; do
  echo "step=$i loss=0.$((99 - i))"; [ $((i % 10)) != 0 ] || echo state $i >"$TRAINERD_LOGDIR/ckpt-$i"; i=$((i + 1))
done
`,
	}
}

// TestInstallable makes sure of what `go install ...@latest` asks of a module.
func TestInstallable(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^(replace|exclude)\b.*`).Find(mod); m != nil {
		t.Errorf("go.mod has %q, with which go install refuses a module", m)
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile(`(?m)^module (.*)$`).FindSubmatch(mod)
	if want := "go install " + string(module[1]) + "/cmd/...@latest"; !strings.Contains(string(text), want) {
		t.Errorf("README.md does not have %q", want)
	}
}

func TestReadmeCommands(t *testing.T) {
	var got []string
	for _, c := range readmeCommands("# a\n\n    make run   # builds\n    go install x@latest    # or, in a clone: make install\n\nType `make`, `make x`, `a b`, `trainerd`\nor `bin/ckpt ls d`.\n") {
		got = append(got, fmt.Sprint(c.line, " ", c.command))
	}
	if want := "3 make run|4 go install x@latest|4 make install|6 make|6 make x|7 bin/ckpt ls d"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}
