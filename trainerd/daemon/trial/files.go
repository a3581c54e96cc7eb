package trial

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/braces"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/internal/walkdir"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// maxFiles bounds how many files of the folders are looked at, and maxOutside of those that
// are named on the command line or in the source: they may be data sets.
const (
	maxFiles   = 50_000
	maxOutside = 2_000
)

// Saved are the checkpoints of a program.
type Saved struct {
	Logdir  string   // the folder that they are below
	Pattern string   // of their names below it
	Names   []string // some of them, below Logdir
	// Step says that the names have a step.
	Step bool
}

// file is what a snapshot knows of one.
type file struct {
	size int64
	at   time.Time
}

// snapshot is the state of the files below some folders, by their absolute names.
type snapshot map[string]file

// look returns the state of the files that the program may make.
func (r roots) look() snapshot {
	s := snapshot{}
	s.lookAt(maxFiles, r.dir, r.logdir)
	for _, dir := range r.elsewhere() {
		s.lookAt(len(s)+maxOutside, dir)
	}
	return s
}

// lookAt adds the files below folders, until there are so many.
func (s snapshot) lookAt(most int, dirs ...string) {
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			continue
		}
		_ = walkdir.Walk(abs, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // files come and go
			case d.IsDir() && name != abs && isForeign(d.Name()):
				return fs.SkipDir
			case len(s) > most:
				return fs.SkipAll
			case !d.Type().IsRegular():
				return nil
			}
			if info, err := d.Info(); err == nil {
				s[name] = file{info.Size(), info.ModTime()}
			}
			return nil
		})
	}
}

// isForeign reports whether a folder is not one that a training writes to.
func isForeign(base string) bool {
	return strings.HasPrefix(base, ".") && base != "." || slices.Contains([]string{"__pycache__", "node_modules", "venv", "site-packages", checkpoint.DamagedDir}, base)
}

// since returns the files that have come or changed.
func (s snapshot) since(before snapshot) []string {
	changed := maps.Clone(s)
	maps.DeleteFunc(changed, func(name string, f file) bool { return before[name] == f })
	return slices.Sorted(maps.Keys(changed))
}

var (
	// checkpointFile are names of files that hold tensors, or a model.
	checkpointFile = lazyregexp.New(`(?i)\.(?:pt|pth|ckpt|cpt|bin|zip|safetensors|npz|npy|keras|h5|hdf5|index|ubj|model|cbm|pkl|pickle|joblib|msgpack|mpk|eqx|ot|nemo|pdparams|pdopt|params|caffemodel|solverstate|jld2|bson|rds|pth\.tar|distcp|meta)(?:\.(?:gz|zst|xz|bz2|lz4))?$|(?:ckpt|checkpoint|snapshot|weights)[^/]*$`)
	// checkpointFolder are names of folders that are a checkpoint each.
	checkpointFolder = lazyregexp.New(`(?i)^(?:.*(?:checkpoint|ckpt|step|epoch|iter)[-_=]?|(?:.*[^a-z])?(?:it|round|update)[-_=]?)\d+$|^\d+$`)
	// unfinished are names that a program writes to before it renames the file, or that it
	// gives the file before.
	unfinished = lazyregexp.New(`(?i)^\.|\.(?:tmp|part|temp)[^/]*$|[-_.](?:bkp|bak|old|orig|prev(?:ious)?)(?:\.[a-z0-9]+)?$|~$|tfevents|\.log$|\.py$|^trainerd\.|^checkpoint$|\.pbtxt$|\.(?:png|jpe?g|gif|svg|pdf|webp|html|wav|flac|mp[34]|onnx|tflite|gguf|pb|jsonl)$`)
	numbers    = lazyregexp.New(`\d+`)
	// sheet are endings of names of tables.
	sheet = lazyregexp.New(`(?i)\.(?:csv|tsv|xlsx?|parquet|arrow)$`)
	// numbered are endings of names whose number is that of a format.
	numbered = lazyregexp.New(`(?i)\.(?:h5|hdf5|jld2|pt2|bz2|lz4|7z)$`)
	// sequel is a name with a number as a program gives it to one file of its state
	// after another, whatever the form of that is. epoch_1.csv may be what it found out.
	sequel = lazyregexp.New(`(?i)(?:^|[^a-z])(?:model|net(?:work)?|state|save|restart|backup|params?|policy|agent|snap|dump|trainer|ck|ckp|chk|lgbm?|gbm|xgb(?:oost)?|catboost|booster|trees?|forest)[-_.=]?\d+(?:[-_.T=]\d+)*(?:\.[a-z0-9]{1,8})?$`)
	// store is a folder for the state of a training: what is numbered there is such.
	store = lazyregexp.New(`(?i)^(?:(?:model|train(?:ing|er)?)[-_]?)?(?:check[-_]?points?|ckpts?|chkpts?|ck|chk|snapshots?|weights|(?:saved?[-_]?)?models?|saves?|states?|backups?|restarts?)$`)
	// bundleTail ends the names of the files of a TensorFlow bundle.
	bundleTail = lazyregexp.New(`\.(?:index|meta|data-\d+-of-\d+)$`)
)

// savedIn returns what among changed files are checkpoints, nil for nothing. lists
// says that the program looks at whatever is in a folder.
func (r roots) savedIn(changed []string, lists bool) *Saved {
	groups := map[string]map[string]bool{} // names by folder and pattern
	unknown := !slices.ContainsFunc(changed, func(name string) bool { _, base := r.checkpointOf(name); return base != "" })
	for _, name := range changed {
		root, base := r.checkpointOf(name)
		if base == "" && unknown && isSequel(name, changed) {
			root, base = filepath.Dir(name), filepath.Base(name)
		}
		if base == "" {
			continue
		}
		key := patternOf(filepath.Join(root, base))
		if groups[key] == nil {
			groups[key] = map[string]bool{}
		}
		groups[key][filepath.Join(root, base)] = true
	}
	if len(groups) == 0 {
		return nil
	}
	rankOf := func(pattern string) int {
		if areBests(pattern, groups) {
			return rankBest
		}
		return rank(pattern)
	}
	best := slices.MinFunc(slices.Collect(maps.Keys(groups)), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(rankOf(a), rankOf(b)),
			-cmp.Compare(len(groups[a]), len(groups[b])),
			cmp.Compare(accompanying(a), accompanying(b)), cmp.Compare(a, b))
	})
	main := group{pattern: best, names: slices.Sorted(maps.Keys(groups[best])), steps: map[int64]bool{}}
	for _, name := range main.names {
		main.steps[found.StepOf(name)] = true
	}
	all := append([]group{main}, companions(main, changed)...)
	p := places{dir: r.rootOf(best), trial: r.logdir, filled: onlyIn(filepath.Dir(best), all, changed), lists: lists, files: changed}
	return ofGroups(p.logdirOf(best), all)
}

// ofGroups returns the checkpoints that have files of each group.
func ofGroups(logdir string, groups []group) *Saved {
	s := &Saved{Logdir: logdir, Step: found.StepOf(groups[0].names[0]) != found.NoStep}
	var patterns []string
	for _, g := range groups {
		patterns = append(patterns, everyRun(below(s.Logdir, g.pattern)))
		for _, name := range g.names {
			s.Names = append(s.Names, below(s.Logdir, name))
		}
	}
	s.Pattern = braces.Join(patterns)
	slices.SortStableFunc(s.Names, func(a, b string) int {
		return cmp.Or(cmp.Compare(found.StepOf(a), found.StepOf(b)), cmp.Compare(a, b))
	})
	return s
}

// count returns how many checkpoints there are: those with a step. Of nil there are none.
func (s *Saved) count() int {
	if s == nil {
		return 0
	}
	steps := map[int64]bool{}
	for _, name := range s.Names {
		steps[found.StepOf(name)] = true
	}
	return len(steps)
}

// checkpointOf returns the folder and the name of the checkpoint that a file is
// part of, "" for none: the outermost folder below one of the roots that is one, else
// the file.
func (r roots) checkpointOf(name string) (root, base string) {
	for _, dir := range r.all() {
		abs, err := filepath.Abs(dir)
		rel, ok := strings.CutPrefix(name, abs+string(filepath.Separator))
		if err != nil || !ok {
			continue
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		for i := range len(parts) - 1 {
			if checkpointFolder().MatchString(parts[i]) && !isStepOfEpoch(name) && !strings.HasPrefix(parts[i], "version_") {
				return filepath.Join(abs, filepath.Join(parts[:i]...)), parts[i]
			}
		}
		break
	}
	base = filepath.Base(name)
	if !checkpointFile().MatchString(base) || unfinished().MatchString(base) || isOutput(name) {
		return "", ""
	}
	return filepath.Dir(name), bundleTail().ReplaceAllString(base, "")
}

// isSequel reports whether a file is one of several of a state, by their names or that
// of their folder. It is asked where no name says more: one file alone may be anything.
func isSequel(name string, changed []string) bool {
	base := filepath.Base(name)
	isState := sequel().MatchString(base) || numbers().MatchString(base) && store().MatchString(filepath.Base(filepath.Dir(name)))
	if !isState || sheet().MatchString(base) || unfinished().MatchString(base) || isOutput(name) || hasWord(record, base) {
		return false
	}
	alike := func(other string) bool { return other != name && patternOf(other) == patternOf(name) }
	return slices.ContainsFunc(changed, alike)
}

// starred returns a base name with * for its numbers, but for that of its format.
func starred(base string) string {
	format := numbered().FindString(base)
	if starred := numbers().ReplaceAllString(strings.TrimSuffix(base, format), "*") + format; starred != "*" {
		return starred
	}
	return "[0-9]*" // and not what else is in the folder
}

// newest are words in the names of files that a program replaces at each save.
var newest = wordsOf("last latest current snapshot resume train(?:ing)?")

// rankOne is the rank of a name that a program replaces at each save, and rankBest that of the
// best, or the last of all.
const (
	rankOne  = 2
	rankBest = 4
)

// rank puts the patterns that are most likely checkpoints to resume from first: those
// with a step, but not the best, or the last of all. A name begins with its folder.
func rank(name string) int {
	pattern, folder := filepath.Base(name), filepath.Base(filepath.Dir(name))
	lower := strings.ToLower(pattern)
	switch {
	case strings.Contains(lower, "best") || strings.Contains(lower, "final") || strings.Contains(strings.ToLower(folder), "best"):
		return rankBest
	case !strings.Contains(pattern, "*") && (hasWord(record, pattern) || !hasWord(resumable, pattern) && !hasWord(newest, pattern)):
		return 3
	case !strings.Contains(pattern, "*"):
		return rankOne
	case !strings.Contains(lower, "ckpt") && !strings.Contains(lower, "checkpoint") && !strings.Contains(lower, "step") && !strings.Contains(lower, "epoch"):
		return 1
	}
	return 0
}

// everyRun returns a pattern that means the folders of all starts.
func everyRun(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i, part := range parts[:len(parts)-1] {
		if !isRun(part) {
			continue
		}
		part = randomName().ReplaceAllString(part, "${1}*")
		part = monthName().ReplaceAllString(part, "$1*$2")
		parts[i] = strings.ReplaceAll(numbers().ReplaceAllString(part, "*"), "**", "*")
	}
	return strings.Join(parts, "/")
}

// below returns a name as it is below a folder, with slashes.
func below(dir, name string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return path.Base(filepath.ToSlash(name))
	}
	rel, err := filepath.Rel(abs, name)
	if err != nil {
		return path.Base(filepath.ToSlash(name))
	}
	return filepath.ToSlash(rel)
}
