package prove

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/internal/walkdir"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// A program that runs in a copy of its folder may overwrite any file in it, even through a link. So
// folders are created, and small files and models are copied. Checkpoints of an earlier training
// are left out, because a run must start from scratch. A large file that is not a model is data,
// and is linked.
const (
	maxFiles   = 20_000   // entries of a copy; there are links to the folders after them
	maxEntries = 1000     // of a folder that is not data
	maxDepth   = 16       // links may lead upwards
	maxSmall   = 1 << 20  // bytes of a file that may be a script, a config or a log
	maxBytes   = 64 << 20 // of all of them
	maxModel   = 1 << 30  // bytes of a model that is copied; a larger one is left out
)

// copier makes one copy.
type copier struct {
	emptied func(name string) (empty, folder bool) // by the slash-separated name
	files   int                                    // that may still be copied
	bytes   int64
	depth   int
	command []string
	leftOut []string
}

// folder copies what is in one folder into another: its files first, for the limits.
func (c *copier) folder(from, to, below string) error {
	entries, err := os.ReadDir(from)
	if err != nil && below == "." {
		return nil // the first run says what is wrong with it
	} else if err != nil {
		return os.Symlink(from, to)
	}
	if below != "." {
		if c.depth > maxDepth || (len(entries) > maxEntries || c.files < len(entries)) && !hasStates(entries) {
			return os.Symlink(from, to)
		}
		if err := os.Mkdir(to, 0o777); err != nil {
			return err
		}
	}
	c.files -= len(entries)
	c.depth++
	defer func() { c.depth-- }()
	for _, folders := range []bool{false, true} {
		for _, e := range entries {
			name := filepath.Join(from, e.Name())
			info, err := os.Stat(name) // of what a link leads to
			if isFolder := err == nil && info.IsDir(); isFolder != folders {
				continue
			}
			if err := c.entry(name, filepath.Join(to, e.Name()), path.Join(below, e.Name()), info, entries); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry copies a file or a folder. info is nil for a link that leads nowhere.
func (c *copier) entry(from, to, below string, info fs.FileInfo, siblings []fs.DirEntry) error {
	if empty, folder := c.emptied(below); empty && folder {
		return os.Mkdir(to, 0o777)
	} else if empty {
		return nil
	}
	switch {
	case info == nil || !info.IsDir() && !info.Mode().IsRegular():
		return os.Symlink(from, to)
	case c.isNamed(below):
		return os.Symlink(from, to) // it is read
	case isEarlier(from, info, siblings) || !info.IsDir() && isModel(from) && info.Size() > maxModel:
		c.leftOut = append(c.leftOut, below)
		return nil
	case info.IsDir() && isTool(info.Name()):
		return os.Symlink(from, to)
	case info.IsDir():
		return c.folder(from, to, below)
	case isModel(from):
		return copyFile(from, to, info)
	case info.Size() > min(maxSmall, c.bytes):
		return os.Symlink(from, to)
	}
	c.bytes -= info.Size()
	return copyFile(from, to, info)
}

// isNamed reports whether the command names a checkpoint, to begin with.
func (c *copier) isNamed(name string) bool {
	return found.StepOf(name) != found.NoStep && slices.ContainsFunc(c.command, func(word string) bool {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		return path.Clean(filepath.ToSlash(word)) == name
	})
}

// hasStates reports whether a folder is one in which a training saves.
func hasStates(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isModel(e.Name()) || countedBy().MatchString(e.Name()) })
}

// isTool reports whether a folder belongs to a tool, so that no training writes there.
func isTool(base string) bool {
	return strings.HasPrefix(base, ".") || slices.Contains([]string{"__pycache__", "node_modules", "venv", "env", "site-packages"}, base)
}

// isModel reports whether a file is a model or a checkpoint, by its name. Arrays may be data.
func isModel(name string) bool {
	base := filepath.Base(name)
	return ofTensors().MatchString(base) || saidToBe().MatchString(base) ||
		(holdsState().MatchString(base) || pickle().MatchString(base)) && (ofModel().MatchString(base) || countedBy().MatchString(base))
}

var (
	// ofTensors are endings of files that are never data, and ofModel words in the names of
	// other files that are models.
	ofTensors = lazyregexp.New(`(?i)\.(?:pt|pth|ckpt|safetensors|keras|index)$`)
	ofModel   = lazyregexp.New(`(?i)model|state|weight|param|net(?:$|[^a-z])|policy|agent|optim|last|latest|best`)
	// saidToBe are names that say that a file or folder is a checkpoint, and countedBy those
	// that say what their number counts.
	saidToBe  = lazyregexp.New(`(?i)ckpt|check_?point|snapshot`)
	countedBy = lazyregexp.New(`(?i)(?:ckpt|check_?point|snapshot|step|epoch|iter)s?[-_=.]?\d`)
)

// isEarlier reports whether a file or folder is a checkpoint of a training, by the step in
// its name: the name says so, or there are several such.
func isEarlier(name string, info fs.FileInfo, siblings []fs.DirEntry) bool {
	base := filepath.Base(name)
	switch {
	case found.StepOf(base) == found.NoStep:
		return false
	case info.IsDir():
		return countedBy().MatchString(base) && hasModel(name)
	case !isModel(name):
		return false
	case countedBy().MatchString(base):
		return true
	}
	form := numbers().ReplaceAllString(base, "*")
	return !strings.Contains(base, "-of-") && slices.ContainsFunc(siblings, func(e fs.DirEntry) bool {
		return e.Name() != base && numbers().ReplaceAllString(e.Name(), "*") == form
	})
}

// hasModel reports whether there is a model in a folder, or in one below it.
func hasModel(folder string) (found bool) {
	looked := 0
	_ = walkdir.Walk(folder, func(name string, d fs.DirEntry, err error) error {
		looked++
		found = found || err == nil && name != folder && (isModel(name) || ofFolders().MatchString(d.Name()))
		if found || looked > maxEntries {
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// ofFolders are files in the checkpoints of torch.distributed and orbax.
var ofFolders = lazyregexp.New(`\.distcp$|^_(?:CHECKPOINT_)?METADATA$|^\.metadata$|^\.zarray$|^manifest\.ocdbt$`)

// copyFile copies a file, with its mode and time, or links it if it cannot be read.
func copyFile(from, to string, info fs.FileInfo) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return os.Symlink(from, to)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closing := out.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
