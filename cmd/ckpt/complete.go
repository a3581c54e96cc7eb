package main

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/cmd/internal/clidoc"
)

// mostCompleted bounds the tensors that are offered: nobody reads more.
const mostCompleted = 2000

// completions returns what may be typed at a place: checkpoints, and the tensors of
// one.
func completions(p clidoc.Place) []string {
	switch {
	case slices.Contains([]string{"only", "exclude", "set", "unset"}, p.Flag) && len(p.Args) > 0:
		return tensorsOf(p.Args[0], p.Current)
	case slices.Contains([]string{"against", "like", "pin"}, p.Flag):
		return checkpointsBelow(p.Current)
	case p.Flag != "" || p.Command == "" || p.Command == "help" || p.Command == "maps" || p.Command == "math":
		return nil
	case p.Command == "cat" && len(p.Args) == 1:
		return tensorsOf(p.Args[0], p.Current)
	}
	return checkpointsBelow(p.Current)
}

// checkpointsBelow returns the checkpoints and folders that complete a path; nil,
// for names of files, where there is none.
func checkpointsBelow(current string) []string {
	dir, _ := filepath.Split(current)
	list, err := ckptdir.List(filepath.Join(".", dir))
	if filepath.IsAbs(dir) {
		list, err = ckptdir.List(dir)
	}
	if err != nil {
		return nil
	}
	var lines []string
	for _, c := range slices.Backward(list) {
		step := ""
		if c.Step != retention.NoStep {
			step = ", step " + strconv.FormatInt(c.Step, 10)
		}
		lines = append(lines, dir+filepath.Base(c.Prefix)+"\tcheckpoint"+step)
	}
	others := clidoc.Paths(current, func(path string, d fs.DirEntry) (string, bool) {
		return "tensors", !d.IsDir() && slices.Contains([]string{".safetensors", ".npz", ".pt", ".pth", ".h5", ".keras"}, filepath.Ext(path))
	})
	return append(lines, others...)
}

// tensorsOf returns the tensors of a checkpoint that begin like a word. What cannot
// be read has none.
func tensorsOf(arg, current string) (lines []string) {
	f, err := formats.Find(arg)
	if err != nil {
		return nil
	}
	r, err := openFile(f)
	if err != nil {
		return nil
	}
	defer r.Close()
	for info, err := range r.Tensors() {
		if len(lines) == mostCompleted {
			break
		}
		if name := escapeName(info.Name); err == nil && len(name) >= len(current) && name[:len(current)] == current {
			lines = append(lines, name+"\t"+shapeText(info.Shape))
		}
	}
	return lines
}
