package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// args returns a command's arguments if there are as many as it needs.
func args(c *cli.Context, names ...string) ([]string, error) {
	got := c.Args().Slice()
	if len(got) != len(names) {
		return nil, usagef("%s takes %s", c.Command.Name, strings.Join(names, " "))
	}
	return checked(c, got, names[len(names)-1])
}

// dirArg returns the only argument of a command, a directory of checkpoints.
func dirArg(c *cli.Context) (string, error) {
	a, err := args(c, "DIR")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(a[0]); err == nil && !isDir(a[0]) {
		return "", usagef("%s is a file; %s takes a directory of checkpoints", a[0], c.Command.Name)
	}
	return a[0], nil
}

// manyArgs returns a command's arguments if there are at least so many.
func manyArgs(c *cli.Context, least int, names string) ([]string, error) {
	got := c.Args().Slice()
	if len(got) < least {
		return nil, usagef("%s takes %s", c.Command.Name, names)
	}
	return checked(c, got, names)
}

// checked returns arguments, of URLs of files their paths. It refuses what a variable without a
// value leaves in a script, and names that no new checkpoint can have.
func checked(c *cli.Context, args []string, names string) ([]string, error) {
	for i, arg := range args {
		if arg == "" {
			return nil, usagef("%s: an argument is empty", c.Command.Name)
		}
		if path, ok := strings.CutPrefix(arg, "file://"); ok && filepath.IsAbs(path) {
			args[i] = path // as TensorFlow reads it
		}
	}
	if last := args[len(args)-1]; strings.Contains(names, "NEWPREFIX") {
		return args, checkNew(c, last)
	}
	return args, nil
}

// checkNew refuses directories: a checkpoint with such a prefix has hidden files that nothing finds.
func checkNew(c *cli.Context, name string) error {
	switch {
	case name == "-":
		return usagef("%s writes files, not the standard output; a file called - is ./-", c.Command.Name)
	case isDir(name), os.IsPathSeparator(name[len(name)-1]):
		return usagef("%s is a directory; give the name of what to write in it, such as %s", name, filepath.Join(name, "model.ckpt"))
	}
	return nil
}

var fileOfCheckpoint = lazyregexp.New(`\.(?:index|meta|manifest\.json|pin|data-[0-9]{5}-of-[0-9]{5})$`)

// find returns what an argument means. One that means nothing that is there is
// taken for the prefix of a checkpoint.
func find(arg string) (formats.File, error) {
	if isDir(arg) {
		f, err := formats.FindIn(arg)
		if wrong := new(formats.KindError); err != nil && !errors.As(err, &wrong) {
			return f, fmt.Errorf("%w; `ckpt ls %s` lists the checkpoints there", err, arg)
		}
		return f, err
	}
	if prefix, ok := sideFile(arg); ok {
		arg = prefix
	}
	f, err := formats.Find(arg)
	if errors.Is(err, fs.ErrNotExist) {
		prefix := strings.TrimSuffix(arg, fileOfCheckpoint().FindString(arg))
		return formats.File{Kind: formats.Checkpoint, Path: prefix}, nil
	}
	return f, err
}

// sideFile returns the checkpoint that a file next to it belongs to: its
// manifest, or the file that pins it.
func sideFile(arg string) (prefix string, ok bool) {
	for _, suffix := range []string{".manifest.json", pinSuffix} {
		if prefix, ok = strings.CutSuffix(arg, suffix); ok && layout.Exists(prefix) {
			return prefix, true
		}
	}
	return "", false
}

// prefixOf returns the checkpoint that an argument means: a prefix, one of a
// checkpoint's files, the directory where it is the current one, or a SavedModel.
func prefixOf(arg string) (string, error) {
	f, err := find(arg)
	if err != nil {
		return "", err
	}
	if !f.Kind.IsCheckpoint() {
		return "", &formats.KindError{
			Path: f.Path, Is: f.Kind.String(), Next: fmt.Sprintf("`ckpt convert %s NEWPREFIX` makes a checkpoint of it, which this command needs", arg),
		}
	}
	return f.Path, nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// open opens what an argument means, and returns its prefix or file.
func open(arg string) (ckptfmt.Reader, string, error) {
	f, err := find(arg)
	if err != nil {
		return nil, "", err
	}
	r, err := openFile(f)
	return r, f.Path, err
}

func openFile(f formats.File) (ckptfmt.Reader, error) {
	r, err := openFormat(f)
	if err != nil {
		return nil, err
	}
	if f.Kind.IsCheckpoint() {
		return r.Reader, nil
	}
	return r, nil // which knows more names than those of the tensors
}

// openFormat is openFile for what asks its format more than its tensors.
func openFormat(f formats.File) (*formats.Reader, error) {
	r, err := f.Open()
	dir := filepath.Dir(f.Path)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, fs.ErrNotExist) && f.Kind.IsCheckpoint():
		return nil, fmt.Errorf("there is no checkpoint %s: %w; `ckpt ls %s` lists the existing ones", f.Path, fs.ErrNotExist, dir)
	case ckptdir.IsUnreadable(err):
		return nil, fmt.Errorf("checkpoint %s cannot be read, and may be intact: %w", f.Path, err)
	case errors.Is(err, ckptfmt.ErrVersion):
		return nil, fmt.Errorf("%w; install a newer release of ckpt", err)
	case errors.Is(err, atomicfile.ErrNotRegular):
		return nil, err
	case f.Kind.IsCheckpoint() && !isFooterOf(err, f.Path):
		return nil, fmt.Errorf("%w; `ckpt ls %s` lists older checkpoints", err, dir)
	}
	return nil, err
}

// isFooterOf reports whether a file does not end as a table does.
func isFooterOf(err error, name string) bool {
	var corrupt *ckptfmt.CorruptError
	return errors.As(err, &corrupt) && corrupt.Part == "footer" && corrupt.Name == name
}
