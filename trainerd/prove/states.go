package prove

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/pickled"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	"github.com/trainerd/trainerd/internal/braces"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// Tensor is a tensor that differs between two runs.
type Tensor struct {
	File string `json:"file"` // below the logdir
	Name string `json:"name"` // "" for a file of an unknown format
	// Step is that of the file's name, -1 for none.
	Step int64 `json:"step"`
	// MaxAbs is the largest distance of two elements, 0 if there is none.
	MaxAbs manifest.Metric `json:"max_abs,omitempty"`
	// Reason describes what differs.
	Reason string `json:"reason"`
}

// key is the same in checkpoints of other steps, and for all elements of an array that has
// been written as text: one of them may differ by next to nothing by chance.
func (t *Tensor) key() string {
	return numbers().ReplaceAllString(t.File, "*") + "\x00" + elements().ReplaceAllString(t.Name, "/*")
}

var elements = lazyregexp.New(`(?:/\d+)+$`)

var numbers = lazyregexp.New(`\d+`)

// holdsState are names of files that have tensors.
var holdsState = lazyregexp.New(`(?i)\.(?:pt|pth|ckpt|bin|safetensors|npz|npy|keras|h5|hdf5|index)$`)

// pickle are endings of files that hold tensors if the pattern means them.
var pickle = lazyregexp.New(`(?i)\.(?:pkl|pickle|joblib)$`)

// notState are names of files that are not the state of a training.
var notState = lazyregexp.New(`(?i)tfevents|^trainerd\.|^run-report|manifest|\.tmp|\.part$|~$|\.log$|\.data-\d+-of-\d+$|\.meta$|\.pin$|^checkpoint$|\.pbtxt$`)

// statesIn returns the files below a logdir that hold the state of the training.
func statesIn(logdir, pattern string) (names []string) {
	root := tfevents.DirFS(logdir)
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && isForeign(name):
			return fs.SkipDir
		case d.Type().IsRegular() && !notState().MatchString(d.Name()) && (holdsState().MatchString(d.Name()) || matches(pattern, name)):
			names = append(names, name)
		}
		return nil
	})
	return names
}

// isForeign reports whether a folder below a logdir is not one in which a program saves.
func isForeign(folder string) bool {
	base := path.Base(folder)
	return folder == checkpoint.DamagedDir || folder != "." && strings.HasPrefix(base, ".") || strings.HasPrefix(base, "trainerd.")
}

// matches reports whether a pattern means a file, or a folder that it is in.
func matches(pattern, name string) bool { return matched(pattern, name) != "" }

// matched returns the part of a file's name that a pattern means, "" for none.
func matched(pattern, name string) string {
	for ; pattern != "" && name != "."; name = path.Dir(name) {
		if braces.Match(pattern, name) {
			return name
		}
	}
	return ""
}

// stepOf returns the step in the name of a checkpoint's file: that of what the pattern
// means, which may be a folder, in whose files numbers mean something else.
func stepOf(pattern, name string) int64 {
	if part := matched(pattern, name); part != "" {
		return stepIn(part)
	}
	return stepIn(name)
}

// stepIn returns the last number in a name, -1 for none: that of the folder, if
// the file's has none.
func stepIn(name string) int64 {
	for ; name != "."; name = path.Dir(name) {
		base := path.Base(name)
		base = strings.TrimSuffix(base, path.Ext(base))
		if found := numbers().FindAllString(base, -1); len(found) > 0 {
			step, err := strconv.ParseInt(found[len(found)-1], 10, 64)
			if err == nil {
				return step
			}
		}
	}
	return -1
}

// stepsOfStates returns the steps of the checkpoints, in order.
func stepsOfStates(logdir, pattern string) (steps []int64) {
	for _, name := range statesIn(logdir, pattern) {
		if step := stepOf(pattern, name); step > 0 {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// countSaved returns how many checkpoints there are: by their steps, or 1 where the names
// have none.
func countSaved(logdir, pattern string) int {
	if steps := stepsOfStates(logdir, pattern); len(steps) > 0 {
		return len(steps)
	}
	return min(len(statesIn(logdir, pattern)), 1)
}

// diffStates compares the files that two runs both have. Which ones a run keeps
// depends on when it was killed, but for the last.
func diffStates(a, b, pattern string) (differ []Tensor) {
	other := statesIn(b, pattern)
	for _, name := range statesIn(a, pattern) {
		if !slices.Contains(other, name) {
			continue
		}
		for _, t := range diffFiles(filepath.Join(a, name), filepath.Join(b, name)) {
			t.File, t.Step = name, stepOf(pattern, name)
			differ = append(differ, t)
		}
	}
	if missing := missingLast(a, b, pattern); missing != nil {
		differ = append(differ, *missing)
	}
	slices.SortStableFunc(differ, func(a, b Tensor) int { return cmp.Compare(uint64(a.Step), uint64(b.Step)) })
	return differ
}

// missingLast says that the last checkpoints of two runs have other steps.
func missingLast(a, b, pattern string) *Tensor {
	x, y := stepsOfStates(a, pattern), stepsOfStates(b, pattern)
	if len(x) == 0 || len(y) > 0 && slices.Max(x) == slices.Max(y) {
		return nil
	}
	if len(y) == 0 {
		return &Tensor{Step: slices.Max(x), Reason: "there is no checkpoint at the end"}
	}
	return &Tensor{Step: slices.Max(x), Reason: fmt.Sprintf("the last checkpoint is of step %d, want %d", slices.Max(y), slices.Max(x))}
}

// diffFiles compares two files.
func diffFiles(a, b string) []Tensor {
	x, errX := os.ReadFile(a)
	y, errY := os.ReadFile(b)
	if err := errors.Join(errX, errY); err != nil {
		return []Tensor{{Reason: err.Error()}}
	}
	if bytes.Equal(x, y) && filepath.Ext(a) != ".index" {
		return nil
	}
	rootA, rootB := roots(a, b)
	var p, q any
	if json.Unmarshal(bytes.ReplaceAll(x, []byte(rootA), nil), &p) == nil && json.Unmarshal(bytes.ReplaceAll(y, []byte(rootB), nil), &q) == nil {
		return diffJSON(p, q)
	}
	if differ, err := diffPickles(x, y); err == nil {
		return differ
	}
	if p, q := leavesOfBoosted(string(x)), leavesOfBoosted(string(y)); p != nil && q != nil {
		return diffLeaves(p, q)
	}
	differ, err := diffTensors(a, b)
	switch {
	case err == nil, numbersIn(x) != nil && numbersIn(y) != nil: // such as the arguments of a program
		return append(differ, diffNumbers(x, y)...)
	case bytes.Equal(x, y):
		return nil
	}
	return []Tensor{{Reason: "its bytes differ"}}
}

// roots returns what two names have before their common end: the folders of two runs, whose
// names a program may write into its checkpoints.
func roots(a, b string) (rootA, rootB string) {
	for filepath.Base(a) == filepath.Base(b) && filepath.Dir(a) != a && filepath.Dir(b) != b {
		a, b = filepath.Dir(a), filepath.Dir(b)
	}
	return a, b
}

// diffTensors compares files of a format that is known.
func diffTensors(a, b string) (differ []Tensor, err error) {
	x, err := openState(a)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	y, err := openState(b)
	if err != nil {
		return nil, err
	}
	defer y.Close()
	for d, err := range inspect.Diff(context.Background(), x, y, nil) {
		switch {
		case err != nil && d.Name == "":
			return nil, err
		case err != nil && d.A != nil && d.A.Foreign == torch.Object: // which is among the numbers
		case err != nil:
			differ = append(differ, Tensor{Name: d.Name, Reason: err.Error()})
		case d.A == nil || d.B == nil:
			differ = append(differ, Tensor{Name: d.Name, Reason: "one run does not have it"})
		case d.Elements == 0:
			differ = append(differ, Tensor{Name: d.Name, Reason: "another type or shape"})
		default:
			differ = append(differ, Tensor{Name: d.Name, MaxAbs: manifest.Metric(d.MaxAbs), Reason: fmt.Sprintf("%d elements differ, by up to %.3g", d.Elements, d.MaxAbs)})
		}
	}
	return differ, nil
}

func openState(name string) (*formats.Reader, error) {
	f, err := formats.Find(name)
	if err != nil {
		return nil, err
	}
	return f.Open()
}

// diffJSON compares two values of JSON, whose leaves are as tensors.
func diffJSON(a, b any) []Tensor {
	x, y := map[string]any{}, map[string]any{}
	flatten("", a, x)
	flatten("", b, y)
	return diffLeaves(x, y)
}

// leavesOfJSON returns the leaves of a text, nil if it is not of JSON.
func leavesOfJSON(text []byte) map[string]any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	leaves := map[string]any{}
	flatten("", v, leaves)
	joinWholes(leaves)
	return leaves
}

var errNoPickle = errors.New("it is not a pickle")

// diffPickles compares two Python pickles by their contents.
func diffPickles(a, b []byte) ([]Tensor, error) {
	if !pickled.Is(a) || !pickled.Is(b) {
		return nil, errNoPickle
	}
	x, err := pickled.Leaves(a)
	if err != nil {
		return nil, err
	}
	y, err := pickled.Leaves(b)
	if err != nil {
		return nil, err
	}
	return diffLeaves(x, y), nil
}

// ofSpeed are names of numbers in checkpoints that say how fast a run was, as in the
// trainer_state.json of transformers.
var ofSpeed = lazyregexp.New(`(?i)(?:^|[/_.])(?:runtime|elapsed|wall_?time|(?:samples|steps|tokens|it)_per_sec(?:ond)?)$`)

// diffLeaves compares values by their names.
func diffLeaves(x, y map[string]any) (differ []Tensor) {
	joinWholes(x)
	joinWholes(y)
	names := slices.Sorted(maps.Keys(x))
	for name := range y {
		if _, ok := x[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		v, inA := x[name]
		w, inB := y[name]
		switch p, isNumber := v.(float64); {
		case ofSpeed().MatchString(name):
		case !inA || !inB:
			differ = append(differ, Tensor{Name: name, Reason: "one run does not have it"})
		case v == w, isNaN(v) && isNaN(w):
		case isNumber:
			q, _ := w.(float64)
			differ = append(differ, Tensor{Name: name, MaxAbs: manifest.Metric(max(p-q, q-p)), Reason: fmt.Sprintf("%v, want %v", w, v)})
		default:
			differ = append(differ, Tensor{Name: name, Reason: "another value"})
		}
	}
	return differ
}

func isNaN(v any) bool {
	x, isNumber := v.(float64)
	return isNumber && math.IsNaN(x)
}

// flatten puts the leaves of a value into a map, by their path.
func flatten(prefix string, v any, into map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			flatten(strings.TrimPrefix(prefix+"/"+key, "/"), child, into)
		}
	case []any:
		for i, child := range v {
			flatten(prefix+"/"+strconv.Itoa(i), child, into)
		}
	default:
		into[prefix] = v
	}
}

// damageNewest cuts the newest state short, and returns its name, "" for none, and its file info
// after that. The best one is chosen only if there are no others.
func damageNewest(logdir, pattern string) (string, fs.FileInfo) {
	newest, at, isBest := "", time.Time{}, true
	root := tfevents.DirFS(logdir)
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && isForeign(name):
			return fs.SkipDir
		case err != nil || d.IsDir() || !isPart(name, pattern):
			return nil
		}
		best := strings.Contains(d.Name(), "best")
		info, err := d.Info()
		if err != nil || info.Size() == 0 || best && !isBest {
			return nil
		}
		later := info.ModTime().After(at) || info.ModTime().Equal(at) && name > newest
		if later || isBest && !best {
			newest, at, isBest = name, info.ModTime(), best
		}
		return nil
	})
	if newest == "" {
		return "", nil
	}
	full := filepath.Join(logdir, newest)
	info, err := os.Stat(full)
	if err != nil || os.Truncate(full, info.Size()/2) != nil {
		return "", nil
	}
	if info, err = os.Stat(full); err != nil {
		return newest, nil // it has just gone
	}
	return newest, info
}

// isPart reports whether a file is a part of a state.
func isPart(name, pattern string) bool {
	base := path.Base(name)
	return strings.Contains(base, ".data-") || !notState().MatchString(base) && (holdsState().MatchString(base) || matches(pattern, name))
}
