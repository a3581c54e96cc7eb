package eventlog

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/glob"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

const (
	// OwnSuffix ends the names of the events files that trainerd writes for a program. The
	// program's, in the same folder, have other names.
	OwnSuffix = ".trainerd"
	// OwnRun is the folder for trainerd's events if the program writes events into the logdir
	// itself: TensorBoard's Python loader reads the files of a folder one after another, and a START
	// in a later one drops points of an earlier one.
	OwnRun = "trainerd"
	// MarkInfix follows the name of a program's events file in the name of a restart's mark, which
	// sorts right after that file.
	MarkInfix = ".restart-"
)

// ofHost matches what precedes OwnSuffix in the name of a TensorFlow 1 file on a host whose name
// equals OwnSuffix without the dot.
var ofHost = lazyregexp.New(`tfevents\.\d+$`)

// IsOwn reports whether an events file, by its base name, is one that trainerd has written
// for a program.
func IsOwn(base string) bool {
	name, ok := strings.CutSuffix(base, OwnSuffix)
	return ok && strings.Contains(name, "tfevents") && !ofHost().MatchString(name)
}

// IsMark reports whether an events file, by its base name, is the mark of a restart among
// the events of a program.
func IsMark(base string) bool { return IsOwn(base) && strings.Contains(base, MarkInfix) }

// OwnFiles returns the events files that trainerd has written for the program in a logdir,
// without the marks of restarts.
func OwnFiles(logdir string) (names []string) {
	for _, dir := range []string{logdir, filepath.Join(logdir, OwnRun)} {
		found, _ := filepath.Glob(filepath.Join(glob.Escape(dir), "*tfevents*"+OwnSuffix)) // the pattern is a valid one
		names = append(names, found...)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		base := filepath.Base(name)
		return !IsOwn(base) || IsMark(base)
	})
}
