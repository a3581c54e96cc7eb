package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/shell"
)

// interpreters run the scripts whose names end so.
var interpreters = map[string]string{
	".py": "python3", ".sh": "sh", ".r": "Rscript", ".jl": "julia", ".lua": "lua", ".pl": "perl", ".rb": "ruby", ".js": "node",
}

// forgottenDashes returns an error if a program is among the arguments of a command that
// takes one after "--", which is not there. Else the program would be read as a config, or
// as a table, and its flags as those of the command.
func forgottenDashes(args []string) error {
	if len(args) < 3 || !slices.Contains(programCommands, args[1]) {
		return nil
	}
	script := slices.IndexFunc(args[2:], isScript)
	if script < 0 {
		return nil
	}
	script += 2
	begin := script
	for i := range args[2:script] {
		if _, err := exec.LookPath(args[2+i]); err == nil {
			begin = 2 + i // as python3 before it
			break
		}
	}
	words := args[begin:]
	if _, err := exec.LookPath(words[0]); err != nil && begin == script {
		if by := interpreters[strings.ToLower(filepath.Ext(words[0]))]; by != "" {
			words = append([]string{by}, words...)
		}
	}
	own := append([]string{"trainerd"}, args[1:begin]...)
	return usagef("%s: %s is a program; -- comes before it: %s -- %s", args[1], args[script], shell.Join(own), shell.Join(words))
}

// isScript reports whether an argument is a file that can be run, or that an interpreter runs.
func isScript(arg string) bool {
	info, err := os.Stat(arg)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if interpreters[strings.ToLower(filepath.Ext(arg))] != "" {
		return true
	}
	f, err := os.Open(arg)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	n, _ := f.Read(magic[:])
	return bytes.HasPrefix(magic[:n], []byte("#!/")) || string(magic[:n]) == "\x7fELF"
}
