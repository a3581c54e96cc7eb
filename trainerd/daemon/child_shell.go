package daemon

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// hidesEnd returns why the exit code of a command does not show how the program in it ended, so
// that a killed training would count as complete, or "" if it does.
func hidesEnd(command []string) string {
	if len(command) == 0 {
		return ""
	}
	name, args := strings.TrimSuffix(path.Base(filepath.ToSlash(command[0])), ".exe"), command[1:]
	if name == "setsid" && len(args) > 0 && !slices.Contains(args, "-w") && !slices.Contains(args, "--wait") {
		return "setsid ends at once, and leaves its program in the background, where nobody restarts it; drop setsid, or use setsid --wait"
	}
	at := slices.IndexFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c")
	})
	if !slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh"}, name) || at < 0 || at+1 >= len(args) {
		return ""
	}
	script := args[at+1]
	switch pipes, background := operators(script); {
	case background:
		return "the shell leaves the program in the background, where nobody restarts it; remove the & at the end"
	case pipes && !slices.Contains(args[:at], "pipefail") && !strings.Contains(script, "pipefail"):
		return "a pipeline ends like its last command, so a training that fails in it counts as complete; use bash -o pipefail -c, or drop the pipe: what the program prints is shown anyway"
	}
	return ""
}

// operators reports whether a shell script has a pipe, and whether it ends with a command in the
// background. Quoted characters do not count.
func operators(script string) (pipes, background bool) {
	quote, before := rune(0), rune(0)
	for i, c := range script {
		switch {
		case quote != 0:
			if c == quote && (c == '\'' || before != '\\') {
				quote = 0
			}
		case before == '\\':
		case c == '\'' || c == '"':
			quote = c
		case c == '|' && before != '|' && before != '>' && !strings.HasPrefix(script[i+1:], "|"):
			pipes = true
		case c == '&' && before != '&':
			background = strings.TrimSpace(script[i+1:]) == ""
		}
		if before == '\\' {
			c = 0 // it is quoted itself
		}
		before = c
	}
	return pipes, background
}
