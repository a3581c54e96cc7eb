package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/prove"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// A program may be told by an absolute path, or one that begins with .., where to save. Each
// run of a proof gets such a path in its own folder, or the runs would share one, and change
// what a training has there.

// place is a folder that a run of a proof has elsewhere; alone means without what is below it.
type place struct {
	from, to string
	alone    bool
}

// relocate returns the words of a program that works in a folder, with the paths of the first
// place that has them as they are there. Those that begin with .. become absolute, since the
// run may work in another folder.
func relocate(words []string, dir string, places ...place) []string {
	moved := slices.Clone(words)
	for i := 1; i < len(words); i++ {
		key, name, ok := recipe.PathIn(words[i], dir)
		if !ok {
			continue
		}
		for _, p := range places {
			if below, err := filepath.Rel(p.from, name); err == nil && filepath.IsLocal(below) && (below == "." || !p.alone) {
				name = filepath.Join(p.to, below)
				break
			}
		}
		moved[i] = key + name
	}
	return moved
}

// outputOf returns the folder that the words of a program name for its output, where the logdir
// is that or below it, and the logdir below that; "" for none.
func outputOf(words []string, dir, logdir string) (output, below string) {
	for _, word := range words[min(1, len(words)):] {
		_, name, ok := recipe.PathIn(word, dir)
		rel, err := filepath.Rel(name, logdir)
		if isRoot := filepath.Dir(name) == name; !ok || err != nil || isRoot || !filepath.IsLocal(rel) || len(name) < len(output) {
			continue
		}
		output, below = filepath.Clean(name), rel
	}
	return output, below
}

// programOf returns the words of the program of a job for a run that works in a folder, "" for
// that of the job, and has a logdir. A job of our own has none.
func programOf(job *config.Config, dir, logdir string) []string {
	if !job.IsChild() {
		return nil
	}
	here := config.Absolute(job.Child.Dir)
	var places []place
	if dir != "" {
		places = append(places, place{from: here, to: dir})
		if real, err := filepath.EvalSymlinks(here); err == nil {
			places = append(places, place{from: real, to: dir})
		}
	} else if job.IsSet("logdir") {
		places = append(places, place{from: config.Absolute(job.Logdir), to: logdir})
		output, below := outputOf(job.Child.Command, here, config.Absolute(job.Logdir))
		places = append(places, place{from: output, to: strings.TrimSuffix(logdir, string(filepath.Separator)+below), alone: true})
	}
	return relocate(job.Child.Command, here, places...)
}

// outputBelow returns the logdir of a job below the folder that its command names, "" where it
// is that.
func outputBelow(job *config.Config, workdir *prove.Workdir) string {
	if workdir != nil || !job.IsSet("logdir") {
		return ""
	}
	_, below := outputOf(job.Child.Command, config.Absolute(job.Child.Dir), config.Absolute(job.Logdir))
	return below
}
