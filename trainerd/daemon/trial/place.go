package trial

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/eventlog"
)

// storeFolder are names of folders that hold nothing but checkpoints, and runFolder, like
// those with a time, of such that a program makes for each of its starts. The logdir is
// above them: curves are elsewhere, and the next start has another folder.
var (
	storeFolder = lazyregexp.New(`(?i)^(?:checkpoints?|ckpts?|weights|snapshots?|step_ckpts|saved?(?:_models?)?|models?)$`)
	runFolder   = lazyregexp.New(`^version_\d+$|^\d{2,4}-\d{2}-\d{2}|^\d{2}[-_:]\d{2}[-_:]\d{2}$|^20\d{6}[-_T]?\d*`)
	// randomName are names of folders with a random end, as Weights & Biases makes them,
	// and monthName is a month in one, as SummaryWriter of PyTorch makes them.
	randomName = lazyregexp.New(`^((?:offline-)?run-)\d{8}_\d{6}-\w+$`)
	monthName  = lazyregexp.New(`(^|[^A-Za-z])[A-Z][a-z][a-z](\d\d_\d\d-\d\d-\d\d)`)
)

// places are what the choice of a logdir depends on.
type places struct {
	dir    string   // in which the program works
	trial  string   // the logdir of the trial
	filled bool     // there is nothing but checkpoints in their folder
	lists  bool     // the program looks at whatever is in a folder
	files  []string // that it has made, by their absolute names
}

// logdirOf returns the folder that is to be the logdir of checkpoints: that of the
// trial if they are below it, else the first below the working directory that is
// more than a folder of checkpoints. A program that takes all that it finds in such a
// folder for checkpoints would take what trainerd has there for some, so its logdir is
// the working directory if there is no other.
func (p places) logdirOf(pattern string) string {
	if abs, err := filepath.Abs(p.trial); err == nil && strings.HasPrefix(pattern, abs+string(filepath.Separator)) {
		return p.trial
	}
	abs, err := filepath.Abs(p.dir)
	if err != nil {
		return filepath.Dir(pattern)
	}
	rel, err := filepath.Rel(abs, filepath.Dir(pattern))
	if err != nil || !filepath.IsLocal(rel) {
		return filepath.Dir(pattern)
	}
	parts := strings.Split(rel, string(filepath.Separator))
	if p.filled && len(parts) > 1 || p.filled && p.lists {
		parts = parts[:len(parts)-1]
	}
	for len(parts) > 1 && storeFolder().MatchString(parts[len(parts)-1]) || slices.ContainsFunc(parts, variesIn) {
		parts = parts[:len(parts)-1]
	}
	for len(parts) > 0 && !p.hasEventsIn(filepath.Join(abs, filepath.Join(parts...))) {
		parts = parts[:len(parts)-1]
	}
	return filepath.Join(p.dir, filepath.Join(parts...))
}

// variesIn reports whether a program makes other folders of such a name.
func variesIn(folder string) bool { return isRun(folder) || strings.Contains(folder, "*") }

// isRun reports whether a program makes a folder for each of its starts.
func isRun(folder string) bool {
	return runFolder().MatchString(folder) || found.NamesTime(folder)
}

// hasEventsIn reports whether a folder has all events files that the program writes below
// its working directory: the curves in others would step back at a restart.
func (p places) hasEventsIn(folder string) bool {
	within := func(dir, name string) bool {
		abs, err := filepath.Abs(dir)
		return err == nil && strings.HasPrefix(name, abs+string(filepath.Separator))
	}
	return !slices.ContainsFunc(p.files, func(name string) bool {
		isEvents := strings.Contains(filepath.Base(name), "tfevents") && !eventlog.IsOwn(filepath.Base(name))
		return isEvents && within(p.dir, name) && !within(folder, name)
	})
}

// onlyIn reports whether all files that have changed in a folder are checkpoints with
// a step, or such as come with them.
func onlyIn(folder string, groups []group, changed []string) bool {
	if !strings.Contains(filepath.Base(groups[0].pattern), "*") {
		return false // the program knows its name
	}
	for _, name := range changed {
		rel, ok := strings.CutPrefix(name, folder+string(filepath.Separator))
		if !ok {
			continue
		}
		first, _, inside := strings.Cut(rel, string(filepath.Separator))
		switch {
		case inside && checkpointFolder().MatchString(first), !inside && checkpointFile().MatchString(first):
		case slices.ContainsFunc(groups, func(g group) bool { return slices.Contains(g.names, name) }):
		default:
			return false
		}
	}
	return true
}

// listing matches what scripts look at all names of a folder with: in Python, the
// shell, JavaScript, Ruby, R, Julia and Go.
var listing = lazyregexp.New(`\b(?:listdir|scandir|iterdir|readdir|readdirSync|ReadDir|list\.files|os\.walk)\b|\bDir\.(?:children|entries)\b|[/"']\*["']|\w/\*(?:[\s);|]|$)|\$\((?:ls|find)\b`)

// lists reports whether a program's source looks at all that is in a folder.
func lists(source string) bool { return listing().MatchString(source) }
