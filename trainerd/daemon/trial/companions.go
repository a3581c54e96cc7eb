package trial

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// A program may write several files at each step: weights_5.npz, optim_5.npz and
// meta_5.json. They are one checkpoint, which is of no use without one of them.
// What else it writes at a step, such as sample images, metrics or an export of the
// model, is not part of it, and must not be deleted with it.

var (
	// output are words in the names of what a training makes to be looked at, or to be
	// used elsewhere.
	output = wordsOf("samples? images? imgs? generated exports? exported onnx torchscript scripted traced preds? predictions? plots? figs? figures? attention attn grads? gradients? visuals? vis renders?")
	// record are words in the names of what it notes of a step.
	record = wordsOf("logs? loss(?:es)? metrics? evals? evaluation results? reports? history hist curves? scores? summary confusion outputs? profile stats? best final")
	// resumable are words in the names of what a training continues from.
	resumable = wordsOf("models? weights? optim(?:izer)? opt adam sched(?:uler)? states? ema rng random scaler params? encoder decoder gen(?:erator)? disc(?:riminator)? critic actor policy ckpt checkpoint meta trainer sampler net(?:work)? [gd] lora adapter head backbone value")
	// besides are words in the names of what accompanies a model.
	besides = wordsOf("optim(?:izer)? opt adam sched(?:uler)? ema rng random scaler meta trainer sampler disc(?:riminator)? critic d head")
	// stateFile are names of files that may hold a part of a checkpoint, next to others.
	stateFile = lazyregexp.New(`(?i)\.(?:json|ya?ml|toml|state|opt|optim|dat|mat|rdata|rda|ser|pt2?)$`)
	// progress are names of files that say how far the training had come when the others were
	// saved: Keras' BackupAndRestore continues from that epoch, whatever the weights are of.
	progress = lazyregexp.New(`(?i)^train(?:ing|er)?[-_]?(?:state|meta(?:data)?|progress)\.(?:json|ya?ml)$`)
	// epochFolder is a folder of an epoch, and stepFile a file of a step.
	epochFolder = lazyregexp.New(`(?i)^(?:.*[^a-z])?ep(?:och)?s?[-_=]?\d+$`)
	stepFile    = lazyregexp.New(`(?i)(?:^|[^a-z])(?:step|iter(?:ation)?|batch)[-_=]?\d+`)
	// keyAndNumber is a part of a name that says how much of something there was: consumed_samples=640.
	keyAndNumber = lazyregexp.New(`[A-Za-z_]+=\d+(?:\.\d+)?`)
	letters      = lazyregexp.New(`[A-Za-z][a-z]*|[A-Z]+`)
)

func wordsOf(list string) func() *regexp.Regexp {
	return lazyregexp.New(`^(?i:` + strings.ReplaceAll(list, " ", "|") + `)$`)
}

// hasWord reports whether one of the words in a name is of a list.
func hasWord(list func() *regexp.Regexp, name string) bool {
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	return slices.ContainsFunc(letters().FindAllString(stem, -1), list().MatchString)
}

// isOutput reports whether a file is a product of the training and not its state, by
// its name or that of its folder.
func isOutput(name string) bool {
	base := keyAndNumber().ReplaceAllString(filepath.Base(name), "")
	return hasWord(output, base) || hasWord(output, filepath.Base(filepath.Dir(name)))
}

// accompanying is 1 for a file that belongs to that of a model, else 0.
func accompanying(name string) int {
	if hasWord(besides, filepath.Base(name)) {
		return 1
	}
	return 0
}

// group is files whose names differ in numbers alone.
type group struct {
	pattern string
	names   []string
	steps   map[int64]bool
}

// companions returns the files that a program writes at the same steps as those of a
// group of files, by pattern. Where none has a step, they are those next to them
// whose names say that they are of the same kind.
func companions(main group, changed []string) (others []group) {
	all := map[string]*group{}
	for _, name := range changed {
		pattern := patternOf(name)
		if pattern == main.pattern || !mayAccompany(main.pattern, name) {
			continue
		}
		if all[pattern] == nil {
			all[pattern] = &group{pattern: pattern, steps: map[int64]bool{}}
		}
		all[pattern].names = append(all[pattern].names, name)
		all[pattern].steps[found.StepOf(name)] = true
	}
	for _, pattern := range slices.Sorted(maps.Keys(all)) {
		if sameSteps(main.steps, all[pattern].steps) {
			others = append(others, *all[pattern])
		}
	}
	return others
}

// patternOf returns a name with * for its numbers, below its folder.
func patternOf(name string) string {
	base, dir := bundleTail().ReplaceAllString(filepath.Base(name), ""), filepath.Dir(name)
	if isStepOfEpoch(name) {
		dir = filepath.Join(filepath.Dir(dir), starred(filepath.Base(dir)))
	}
	return filepath.Join(dir, starred(base))
}

// isStepOfEpoch reports whether a file is a checkpoint in a folder that the program fills in the course of an
// epoch. The folder is none: a kill within a save leaves its other files intact.
func isStepOfEpoch(name string) bool {
	return epochFolder().MatchString(filepath.Base(filepath.Dir(name))) && stepFile().MatchString(filepath.Base(name))
}

// mayAccompany reports whether a file may belong to the checkpoints of a pattern.
func mayAccompany(pattern, name string) bool {
	base := filepath.Base(name)
	if filepath.Dir(patternOf(name)) != filepath.Dir(pattern) || unfinished().MatchString(base) || isOutput(name) || hasWord(record, base) {
		return false
	}
	hasStep := found.StepOf(name) != found.NoStep
	if strings.Contains(filepath.Base(pattern), "*") {
		isAlike := filepath.Ext(base) != "" && filepath.Ext(base) == filepath.Ext(pattern)
		return hasStep && (isAlike || checkpointFile().MatchString(base) || stateFile().MatchString(base))
	}
	isPart := progress().MatchString(base) || checkpointFile().MatchString(base) && hasWord(resumable, base)
	return !hasStep && isPart && hasWord(resumable, filepath.Base(pattern))
}

// sameSteps reports whether files come at the same steps, except the newest: a program
// that was ended may have written only some of its files.
func sameSteps(a, b map[int64]bool) bool {
	newest, common := int64(found.NoStep), false
	for _, steps := range []map[int64]bool{a, b} {
		for step := range steps {
			newest = max(newest, step)
		}
	}
	for _, steps := range []map[int64]bool{a, b} {
		for step := range steps {
			both := a[step] && b[step]
			if common = common || both; !both && step != newest {
				return false
			}
		}
	}
	return common
}
