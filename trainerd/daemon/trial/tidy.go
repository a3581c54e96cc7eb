package trial

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/eventlog"
)

// missing returns the folders of a logdir that are not there yet, the innermost first.
func missing(logdir string) (folders []string) {
	for dir := filepath.Clean(logdir); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return folders
		}
		folders = append(folders, dir)
	}
}

// tidy removes the logdir of the trial, which it has made, if the job gets another one and
// there is nothing of the program's in it: TensorBoard would show the trial as a run.
func (f *Findings) tidy(made []string) {
	if f.Saved == nil || len(made) == 0 || made[0] != filepath.Clean(f.Logdir) || filepath.Clean(f.Saved.Logdir) == made[0] {
		return
	}
	entries, err := os.ReadDir(made[0])
	if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !isOwn(e.Name()) }) {
		return
	}
	for _, e := range entries {
		os.RemoveAll(filepath.Join(made[0], e.Name()))
	}
	for _, dir := range made {
		os.Remove(dir) // only when it is empty
	}
}

// isOwn reports whether trainerd gives a file of a logdir its name.
func isOwn(base string) bool {
	return strings.HasPrefix(base, "trainerd.") || strings.HasPrefix(base, "run-report.") || eventlog.IsOwn(base)
}

// dropEvents removes trainerd's events files that have come since a look. Where the program
// does not say where it is, they have points of wrong steps, which would be in the curves of
// the job.
func dropEvents(logdir string, before []string) {
	for _, name := range eventlog.OwnFiles(logdir) {
		if !slices.Contains(before, name) {
			os.Remove(name) // one that stays is shown, and no more
		}
	}
}
