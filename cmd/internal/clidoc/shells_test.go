package clidoc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withDemo makes a directory that holds the program demo, its script for a
// shell, and a file to complete. It skips the test without that shell.
func withDemo(t *testing.T, shell string) (dir string) {
	t.Helper()
	need(t, shell)
	dir = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "demo")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	var script strings.Builder
	if err := runDemo([]string{"demo", "completion", shell}, &script); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"script": script.String(), "events.file": "", "other file": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("no %s here: its test is left out", program)
	}
}

func output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir, "TERM=xterm")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

func sortedLines(s string) []string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	slices.Sort(lines)
	return lines
}

func TestBash(t *testing.T) {
	dir := withDemo(t, "bash")
	for _, tc := range []struct{ words, want string }{
		{"demo l", "ls"},
		{"demo ls --js", "--json"},
		{"demo ls x --format w", "wide"},
		{"demo ls --format = ''", "csv json wide"},
		{"demo ls --format = j", "json"},
		{"demo ls ev", ""}, // left to readline
		{"demo graph ''", "run"},
		{"demo completion ''", "bash fish zsh"},
		{"demo ls --tag ''", "accuracy loss"},
		{"demo ls --tag = l", "loss"},
		{"demo graph run --feed k", "k=off k=on"},
		{"demo graph run --feed k = ''", "off on"},
		{"demo graph run --feed = k = o", "off on"},
		{"demo graph run --feed t : 1", "10"},
		{"demo graph run --feed x", "x="},
		{"demo graph run m ''", `name\ of\ m`},
		{"./demo ls --js", "--json"},
	} {
		got := output(t, dir, "bash", "--norc", "-c", `
			source ./script
			COMP_WORDS=(`+tc.words+`) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			_demo_complete
			printf '%s\n' "${COMPREPLY[@]}"`)
		if got := strings.Join(sortedLines(got), " "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.words, got, tc.want)
		}
	}
	if got := output(t, dir, "bash", "--norc", "-c", "source ./script; complete -p demo"); !strings.Contains(got, "_demo_complete demo") {
		t.Errorf("complete -p: %s", got)
	}
}

func TestFish(t *testing.T) {
	dir := withDemo(t, "fish")
	for _, tc := range []struct{ line, want string }{
		{"demo l", "ls\tlist: everything"},
		{"demo ls --js", "--json\tprint JSON"},
		{"demo ls x --format w", "wide"},
		{"demo ls --format=j", "--format=json"},
		{"demo ls eve", "events.file"},
		{"demo graph run --f", "--feed"},
		{"demo completion f", "fish"},
		{"demo ls --tag l", "loss\tof the model"},
		{"demo graph run --feed x", "x=\ta number"},
	} {
		got := output(t, dir, "fish", "--no-config", "-c", "source ./script; complete -C '"+tc.line+"'")
		if got := strings.TrimSpace(got); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.line, got, tc.want)
		}
	}
}

// TestZsh types into an interactive zsh, which completes nothing elsewhere.
func TestZsh(t *testing.T) {
	dir := withDemo(t, "zsh")
	if err := os.Rename(filepath.Join(dir, "script"), filepath.Join(dir, "_demo")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ line, want string }{
		{"demo l", "demo ls "},
		{"demo ls --js", "demo ls --json "},
		{"demo ls x --format w", "demo ls x --format wide "},
		{"demo ls --format=j", "demo ls --format=json "},
		{"demo ls eve", "demo ls events.file "},
		{"demo graph run --f", "demo graph run --feed "},
		{"demo completion f", "demo completion fish "},
		{"demo ls --tag l", "demo ls --tag loss "},
		{"demo graph run --feed x", "demo graph run --feed x="},
		{"demo graph run --feed d", "demo graph run --feed dir/"},
		{"demo graph run m n", `demo graph run m name\ of\ m `},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			got := output(t, dir, "zsh", "-f", "-c", zshTyping, "zsh", dir, tc.line)
			if got := strings.TrimRight(got, "\r\n"); got != "<"+tc.want+">" {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// zshTyping starts a zsh on a terminal of its own, types $2 and the tab key, and
// prints the line that comes of it. A key of our own prints the line.
const zshTyping = `
zmodload zsh/zpty || exit 1
zpty inner zsh -f -i
tell() { zpty -w inner "$1" }
tell "PS1= PS2= fpath=($1 \$fpath)"
tell "unsetopt zle_bracketed_paste prompt_cr prompt_sp; autoload -Uz compinit; compinit -u -D; cd $1"
tell 'show() { print -r -- "line<$BUFFER>line"; BUFFER=; zle -I }; zle -N show; bindkey "^X" show'
tell 'print -r -- "rea""dy"'
local out
while zpty -r inner out; do [[ $out == *ready* && $out != *rea\"* ]] && break; done
zpty -w -n inner "$2"$'\t\x18'
while zpty -r inner out; do
    if [[ $out == *line\<*\>line* ]]; then
        out=${out##*line\<}
        print -r -- "<${out%%\>line*}>"
        break
    fi
done
zpty -d inner
`

func TestManPage(t *testing.T) {
	var page strings.Builder
	if err := runDemo([]string{"demo", "man"}, &page); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "demo.1")
	if err := os.WriteFile(file, []byte(page.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Run("man", func(t *testing.T) {
		need(t, "man")
		cmd := exec.Command("man", "--warnings=w", "-l", file)
		cmd.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8", "MAN_KEEP_FORMATTING=")
		out, err := cmd.CombinedOutput()
		text := string(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, want := range []string{
			"demo - show what there is", "demo ls [options] PATH...", "--tag REGEXP", "(default: csv)",
			"   .an example", "EXIT STATUS", "it is not", "NO_COLOR", "demo ls --json .", "demo graph run",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q:\n%s", want, text)
			}
		}
		for _, warning := range []string{"warning:", "__complete", "secret"} {
			if strings.Contains(text, warning) {
				t.Errorf("the page has %q:\n%s", warning, text)
			}
		}
	})
	t.Run("mandoc", func(t *testing.T) {
		need(t, "mandoc")
		out, _ := exec.Command("mandoc", "-T", "lint", "-W", "warning", file).CombinedOutput()
		for _, line := range sortedLines(string(out)) {
			if !strings.Contains(line, "missing date") {
				t.Error(line)
			}
		}
	})
}
