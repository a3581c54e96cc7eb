package config

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// longestArgument is how long a value may be that is still a hyperparameter.
const longestArgument = 200

var (
	// scriptNames end the names of what an interpreter or a launcher runs.
	scriptNames = []string{".py", ".sh", ".bash", ".jl", ".r", ".lua", ".js", ".rb", ".pl"}
	// option is a word that names an argument; -0.5 does not.
	option = lazyregexp.New(`^--?([A-Za-z][\w.-]*)(?:=(.*))?$`)
	// assignment is an argument as hydra and others write it.
	assignment = lazyregexp.New(`^\+{0,2}([A-Za-z][\w.]*)=(.*)$`)
	secret     = lazyregexp.New(`(?i)key|token|secret|password|passwd|credential`)
)

// argumentsOf returns the arguments of a command that have names, as in "--lr 0.1", "--lr=0.1", "-b
// 32", "optimizer.lr=0.1" and "--amp", by name: those of the script, if there is one, and not those
// of its launcher. Names that sound like secrets are left out.
func argumentsOf(command []string) map[string]any {
	words := afterScript(command)
	all := make(map[string]any)
	add := func(name, value string) {
		if !secret().MatchString(name) && len(value) <= longestArgument {
			all[name] = argument(value)
		}
	}
	for i, word := range words {
		m := assignment().FindStringSubmatch(word)
		if m == nil {
			m = option().FindStringSubmatch(word)
		}
		switch {
		case m == nil:
		case strings.Contains(word, "="):
			add(m[1], m[2])
		case i+1 < len(words) && !option().MatchString(words[i+1]) && !assignment().MatchString(words[i+1]):
			add(m[1], words[i+1])
		default:
			add(m[1], "true")
		}
	}
	return all
}

// afterScript returns the words after the first script of a command, or from the first module on,
// or all, if it has neither. The text of "sh -c" is not among them.
func afterScript(command []string) []string {
	for i, word := range command {
		switch {
		case slices.Contains(scriptNames, strings.ToLower(path.Ext(word))):
			return command[i+1:]
		case word == "-c":
			return nil
		case word == "-m" && i+1 < len(command) && !isLauncher(command[i+1]):
			return command[i+1:]
		}
	}
	return command
}

// isLauncher reports whether a module of Python starts the program that trains.
func isLauncher(module string) bool {
	return strings.HasPrefix(module, "torch.distributed.") || strings.HasPrefix(module, "accelerate.") || strings.HasPrefix(module, "deepspeed.")
}

// argument returns a value as TensorBoard's plugin knows them.
func argument(text string) any {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v
	}
	switch text {
	case "true", "True":
		return true
	case "false", "False":
		return false
	}
	return text
}
