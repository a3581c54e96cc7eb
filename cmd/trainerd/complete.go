package main

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// completions returns what may be typed at a place: keys of the config, runs, and
// steps and checkpoints of a run.
func completions(p clidoc.Place) []string {
	switch {
	case p.Flag == "set":
		return keysFor(p.Current)
	case p.Flag == "checkpoint" && len(p.Args) > 0:
		return checkpointsOf(p.Args[0], false)
	case p.Command == "init" && p.Flag == "task":
		return []string{string(dataset.Classification), string(dataset.Regression)}
	case p.Command == "init" && slices.Contains([]string{"label", "weight", "group", "drop"}, p.Flag) && len(p.Args) > 0:
		return columnsOf(p.Args[0])
	case p.Flag != "":
		return nil
	case slices.Contains([]string{"run", "check"}, p.Command):
		return clidoc.Paths(p.Current, isConfigFile)
	case p.Command == "set" && len(p.Args) == 1:
		return settings()
	case p.Command == "keep" && len(p.Args) == 1:
		return checkpointsOf(p.Args[0], true)
	case len(p.Args) > 0 && p.Command != "ls" && p.Command != "tensorboard":
		return nil
	case slices.Contains([]string{"status", "ls", "save", "pause", "resume", "stop", "logs", "set", "keep", "note", "predict", "eval", "export", "serve", "tensorboard"}, p.Command):
		return clidoc.Paths(p.Current, isRunOrConfig)
	}
	return nil
}

// keysFor returns the keys of the config that begin like a word, or the values of a
// key that has few.
func keysFor(current string) (lines []string) {
	key, _, valued := strings.Cut(current, "=")
	for _, k := range config.Keys() {
		switch {
		case !valued && strings.HasPrefix(k.Name, key):
			lines = append(lines, k.Name+"=\t"+k.Form)
		case valued && k.Name == key:
			for _, value := range k.Values {
				lines = append(lines, key+"="+value)
			}
		}
	}
	return lines
}

// columnsOf returns the names of the columns of a table; nil for other data.
func columnsOf(file string) (lines []string) {
	t, err := table.Open(file, table.Options{Sniff: true})
	if err != nil {
		return nil
	}
	defer t.Close()
	for _, name := range t.Columns {
		lines = append(lines, name+"\tcolumn")
	}
	return lines
}

// settings returns what trainerd set changes.
func settings() []string {
	lines := []string{"model.learning_rate=\tnumber"}
	for _, key := range config.SettingKeys() {
		unit := "number"
		switch {
		case strings.HasSuffix(key, "steps"):
			unit = "steps"
		case strings.HasSuffix(key, "secs"):
			unit = "seconds"
		}
		lines = append(lines, key+"=\t"+unit)
	}
	return lines
}

func isConfigFile(path string, d fs.DirEntry) (string, bool) {
	return "config", !d.IsDir() && filepath.Ext(path) == ".toml"
}

func isRunOrConfig(path string, d fs.DirEntry) (string, bool) {
	if d.IsDir() {
		return "run", isRun(path)
	}
	return isConfigFile(path, d)
}

// checkpointsOf returns the checkpoints of a run, or their steps, the newest first.
func checkpointsOf(run string, steps bool) (lines []string) {
	dir, err := logdirOf(run)
	if err != nil {
		return nil
	}
	list, err := ckptdir.List(dir)
	if err != nil {
		return nil
	}
	for _, c := range slices.Backward(list) {
		switch {
		case !steps:
			lines = append(lines, filepath.Base(c.Prefix)+"\tcheckpoint")
		case c.Step >= 0:
			lines = append(lines, strconv.FormatInt(c.Step, 10)+"\tstep of "+filepath.Base(c.Prefix))
		}
	}
	return lines
}
