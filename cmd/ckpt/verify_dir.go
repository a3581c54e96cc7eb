package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// directory checks what `ckpt ls` lists: the checkpoints in a directory and in the folders
// below it; and it looks for leftovers in the folders that have some.
func (v *verification) directory(dir string) error {
	v.dir = dir
	if err := eachBelow(dir, v.folder, v.unreadFolder); err != nil {
		return err
	}
	if v.checkpoints == 0 && len(v.list) == 0 {
		printNone(v.c.App.ErrWriter, dir)
		return exitError(exitNothing)
	}
	return nil
}

// unreadFolder notes a folder that may have checkpoints which nobody has checked.
func (v *verification) unreadFolder(dir string, err error) {
	v.add(findingJSON{Kind: kindUnreadable, Name: jsonName(dir), Error: err.Error()})
}

// folder checks the checkpoints of one folder; err says which records of it cannot be read.
// What a run has moved aside as damaged is checked only where that was asked for.
func (v *verification) folder(dir string, list []listed, err error) error {
	if ckptdir.IsUnreadable(err) {
		v.unreadFolder(dir, err)
	} else if err != nil {
		fmt.Fprintf(v.c.App.ErrWriter, "ckpt: %v\n", err)
	}
	if inDamaged(dir) && !inDamaged(v.dir) {
		v.aside += len(list)
		return nil
	}
	for i := range list {
		if err := v.unlessRemoved(&list[i]); err != nil {
			return err
		}
	}
	if dir != v.dir && !slices.ContainsFunc(list, isOwn) {
		return nil // what is in it is another program's
	}
	problems, err := ckptdir.Check(dir)
	if err != nil {
		return err
	}
	for _, p := range problems {
		v.add(findingJSON{Kind: string(p.Kind), Name: jsonName(p.Path), Error: p.Err.Error()})
	}
	return nil
}

// isOwn reports whether the files of a checkpoint are TensorFlow's, whose names say what
// belongs together.
func isOwn(l listed) bool { return len(l.Files) > 0 }

// unlessRemoved checks a checkpoint. One that is gone afterwards is not damaged: a run removes
// those that it keeps no longer, also while this command reads.
func (v *verification) unlessRemoved(l *listed) error {
	before := *v
	check := v.foreign
	if isOwn(*l) {
		check = v.own
	}
	if err := check(l); err != nil {
		return err
	}
	if len(v.list) > len(before.list) && l.wasRemoved() {
		*v = before
	}
	return nil
}

// wasRemoved reports whether a checkpoint that was whole when it was listed has been deleted.
func (l *listed) wasRemoved() bool {
	if isOwn(*l) {
		return !isThere(l.Files[0])
	}
	return l.problem == nil && !isThere(filepath.Join(l.dir, filepath.FromSlash(l.record.Parts[0])))
}

// own checks a checkpoint of TensorFlow.
func (v *verification) own(l *listed) error {
	before := len(v.list)
	err := v.checkpoint(formats.File{Kind: formats.Checkpoint, Path: l.Prefix}, l.Files)
	isDamaged := slices.ContainsFunc(v.list[before:], func(f findingJSON) bool { return f.Kind == "tensor" || f.Kind == "file" || f.Kind == "checkpoint" })
	if isDamaged && v.repairable == "" {
		v.repairable = l.dir
	}
	return err
}

// foreign checks a checkpoint of another program, which trainerd has verified: by the sums of
// its files; where these were written again since, by its tensors or by the form of its files.
func (v *verification) foreign(l *listed) error {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := integrity.Files(root, l.record.Parts)
	if err == nil && l.problem != nil && !errors.Is(l.problem, manifest.ErrOutdated) {
		err = l.problem
	}
	if err != nil {
		v.checkpoints++
		v.addWhole(l, err)
		return nil
	}
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = filepath.Join(l.dir, filepath.FromSlash(name))
	}
	before := len(v.list)
	summed, err := v.sums(v.c.Context, l.Prefix, files)
	switch {
	case err != nil:
		return err
	case summed || len(v.list) > before:
		v.checkpoints++
		return nil
	}
	return v.rewritten(root, l)
}

// addWhole notes what is wrong with a checkpoint as a whole.
func (v *verification) addWhole(l *listed, err error) {
	v.add(findingJSON{Kind: kindOf("checkpoint", err), Prefix: l.Prefix, Name: jsonName(l.Prefix), Error: err.Error()})
}

// rewritten checks a checkpoint by its tensors, or by the form of its files if only its own program
// can read it.
func (v *verification) rewritten(root *os.Root, l *listed) error {
	v.checkpoints++
	if f, err := find(l.Prefix); err == nil {
		if r, err := f.Open(); err == nil {
			defer r.Close()
			v.begin(r)
			return v.content(v.c.Context, r, l.Prefix)
		}
	}
	v.checks["the form of each file"] = true
	if err := integrity.Check(v.c.Context, root, l.record.Parts, nil); err != nil {
		v.addWhole(l, err)
	}
	return v.c.Context.Err()
}

// below returns the name of a checkpoint as seen from the directory that is checked.
func (v *verification) below(prefix string) string {
	if rel, err := filepath.Rel(v.dir, prefix); err == nil {
		return rel
	}
	return prefix
}

// summariseIntact says what was checked in a directory without any finding.
func (v *verification) summariseIntact() {
	text := fmt.Sprintf("%d checkpoints", v.checkpoints)
	if v.tensors > 0 {
		text += fmt.Sprintf(", %d tensors", v.tensors)
	}
	how := append(slices.Sorted(maps.Keys(v.checks)), fmt.Sprintf("SHA-256 of the files of %d", len(v.summed)))
	fmt.Fprintf(v.c.App.ErrWriter, "%s: %s, all intact (%s)%s\n", v.dir, text, strings.Join(how, "; "), v.asideText())
}

// asideText says that there are checkpoints which were not checked.
func (v *verification) asideText() string {
	if v.aside == 0 {
		return ""
	}
	return fmt.Sprintf("; %d moved aside as damaged were not checked", v.aside)
}

// repairHint says what to do about a damaged checkpoint in a directory.
func (v *verification) repairHint() string {
	if v.repairable == "" {
		return "its run resumes from the newest intact one"
	}
	return fmt.Sprintf("`ckpt repair %s` makes the newest intact checkpoint the current one", v.repairable)
}
