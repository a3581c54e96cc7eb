package recipe

import (
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// objectToken is a part of an object of JSON, or of a dict of Python: a string, a
// number, a bracket, or a word such as None or tensor.
var objectToken = lazyregexp.New(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[-+]?(?i:nan|inf(?:inity)?)\b|[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[{}\[\]():,]|\w[\w.]*`)

// stepNames are the keys that mean the step, the surest first.
var stepNames = []string{"global_step", "step", "_step", "num_updates", "num_timesteps", "total_timesteps", "timesteps", "n_iter", "iteration", "iter", "iters", "it", "update", "updates", "round", "batch"}

// clockNames are keys of numbers that say when or where a line was written.
var clockNames = map[string]bool{"time": true, "timestamp": true, "_timestamp": true, "ts": true, "wall_time": true, "created": true, "pid": true, "process": true, "thread": true, "rank": true, "lineno": true, "line": true, "levelno": true}

// joined is a name as globalStep and global_step have it in common.
func joined(name string) string { return strings.NewReplacer("_", "", "-", "").Replace(name) }

// objectReader walks the tokens of an object.
type objectReader struct {
	m       *match
	prefix  []string // of the objects that are open
	key     string
	isKey   bool // a string that comes now is a key
	opaque  int  // lists and calls that are open, whose numbers have no name
	rank    int  // of the key that has given the step
	inPlace bool // a key says where the training is
}

// addObject adds the numbers of an object, and those of nested objects with joined names. It
// returns false if no key gives the position of the training.
func (m *match) addObject(text string) bool {
	r := objectReader{m: m, isKey: true, rank: len(stepNames)}
	for _, token := range objectToken().FindAllString(text, -1) {
		r.take(token)
	}
	return r.inPlace
}

func (r *objectReader) take(token string) {
	switch token {
	case "{":
		r.open()
	case "}":
		r.prefix, r.key, r.isKey = r.prefix[:max(len(r.prefix)-1, 0)], "", false
	case "[":
		r.opaque++
	case "]":
		r.opaque = max(r.opaque-1, 0)
	case "(": // the first number in it is that of the key
	case ")":
		r.key = ""
	case ":":
		r.isKey = false
	case ",":
		r.isKey = r.opaque == 0
	default:
		r.word(token)
	}
}

// open begins an object: one in a list has no name.
func (r *objectReader) open() {
	r.prefix = append(r.prefix, r.key)
	r.key, r.isKey = "", r.opaque == 0
}

// word takes a key or a value. A string may have a number that was formatted.
func (r *objectReader) word(token string) {
	text := strings.Trim(token, `"'`)
	if r.isKey {
		r.key, r.isKey = text, false
		return
	}
	if r.key == "" || r.opaque > 0 {
		return
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil && !math.IsInf(v, 0) {
		return
	}
	key := r.key
	r.key = "" // what follows in a call, as in tensor(0.5, device=0), is not its value
	r.number(key, v, strings.ContainsAny(text, ".eE"))
}

// number takes a number by its key. An epoch with a point in it is a part of one.
func (r *objectReader) number(key string, v float64, hasPoint bool) {
	base := strings.ToLower(path.Base(key))
	isWhole := v == math.Trunc(v) && v >= 0 && v <= maxCount
	for rank, name := range stepNames {
		if isWhole && joined(base) == joined(name) {
			r.inPlace = true
			if rank < r.rank {
				r.rank, r.m.step = rank, int64(v)
			}
			return
		}
	}
	switch {
	case clockNames[base]:
		return
	case base == "epoch":
		r.inPlace = true
		if isWhole && !hasPoint {
			r.m.epoch = int64(v)
		}
	}
	r.m.value(strings.Trim(strings.Join(append(r.prefix[:len(r.prefix):len(r.prefix)], key), "/"), "/"), v)
}
