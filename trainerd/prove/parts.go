package prove

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// part is a part of the state of a training.
type part struct {
	name string
	// words are in the names of its tensors and curves.
	words func() *regexp.Regexp
	// depends says that it is another when the weights are.
	depends bool
}

// The parts of a state, by name. A name belongs to the first whose words it has.
var (
	partDropout   = &part{"dropout stream", lazyregexp.New(`(?i)drop_?out`), false}
	partBest      = &part{"stale best", lazyregexp.New(`(?i)best|patience|early_stop|(?:^|[_/.])(?:num_)?bad(?:_epochs|_evals)?$|no_improve|since_improve`), true}
	partEMA       = &part{"EMA of the weights", lazyregexp.New(`(?i)(?:^|[^a-z])(?:ema|swa|polyak|shadow)(?:$|[^a-z])|averaged|moving_avg|(?:model|net|weights?|params?)_?av(?:g|era)|(?:^|[^a-z_])(?:avg|average)_?(?:model|net|weights?|params?)|ExponentialMovingAverage`), true}
	partScaler    = &part{"loss scaler", lazyregexp.New(`(?i)scaler|loss_?scale|grad_?scale|growth_tracker|(?:good|fin|skipped)_?steps|(?:^|[/_.])scale$`), false}
	partShuffle   = &part{"shuffle seed", lazyregexp.New(`(?i)shuffl|perm(?:$|utation|[/_.])|sampler|(?:^|[/.])(?:data|epoch)?_?seed$`), false}
	partRandom    = &part{"random state", lazyregexp.New(`(?i)(?:^|[^a-z])rng|random|generator|mt19937|(?:^|[_/.])seed|^(?:[a-z]+_)?keys?$`), false}
	partSchedule  = &part{"schedule of the learning rate", lazyregexp.New(`(?i)sched|learning_?rate|(?:^|[_/.])lr(?:$|[_/.])|warm_?up|last_epoch`), false}
	partOptimizer = &part{"optimizer state (moments)", lazyregexp.New(`(?i)exp_avg|moment|adam|optim|slot|velocity|rmsprop|adagrad|(?:^|[/_.])[mv](?:$|[/_.])|beta\d_power`), true}
	partData      = &part{"data order", lazyregexp.New(`(?i)cursor|position|(?:^|[_/.])pos$|offset|(?:^|[_/.])data|loader|(?:^|[_/.])(?:batch|sample|index|epoch|order|examples|seen)(?:$|/|_?(?:idx|index|pos|num|id|count|order))`), false}
	partStep      = &part{"step off by one", lazyregexp.New(`(?i)(?:^|[/_.])(?:global_?)?(?:step|iteration|iter)s?$`), false}
	partNorm      = &part{"running statistics (BatchNorm)", lazyregexp.New(`(?i)running_(?:mean|var)|moving_(?:mean|var)|num_batches_tracked|batch_?stats`), true}
	partAccum     = &part{"gradients that are added up", lazyregexp.New(`(?i)accum\w*grad|grad\w*accum|acc_?grads?(?:$|[/_.])`), false}
	partEnv       = &part{name: "environment"} // in no checkpoint
	partWeights   = &part{"weights", lazyregexp.New(``), true}

	parts = []*part{partDropout, partBest, partNorm, partEMA, partScaler, partShuffle, partRandom, partSchedule, partOptimizer, partAccum, partData, partStep, partWeights}
)

func partOf(name string) *part {
	i := slices.IndexFunc(parts, func(p *part) bool { return p.words().MatchString(name) })
	return parts[i]
}

// ofOptimizer are the names under which torch's optimizers keep what they know of a
// parameter.
var ofOptimizer = lazyregexp.New(`(?:^|[/_.])state[/_.]\d+[/_.]\w+$`)

// part returns which part of the state a tensor belongs to: by its name, or by that
// of its file.
func (t *Tensor) part() *part {
	if stepIn(t.File) < 0 && partBest.words().MatchString(t.File) {
		return partBest // a copy of the state at a step that the program has chosen
	}
	base := path.Base(t.File)
	inFile := partOf(strings.TrimSuffix(base, path.Ext(base)))
	if p := partOf(t.Name); p == partStep && (inFile == partOptimizer || ofOptimizer().MatchString(t.Name)) {
		return partOptimizer // it counts its updates
	} else if p != partWeights && t.Name != "" {
		return p
	}
	if p := inFile; slices.Contains([]*part{partBest, partEMA, partScaler, partRandom, partSchedule, partOptimizer}, p) {
		return p
	}
	return partWeights
}

// plainSGD is an optimizer without state, unless it has one of stateful.
var (
	plainSGD = lazyregexp.New(`(?i)\bsgd\b`)
	stateful = lazyregexp.New(`(?i)adam|momentum|velocity|rmsprop|adagrad|adafactor|adadelta|\blamb\b|\blion\b|muon`)
)

// mentionsMoments reports whether the script has an optimizer with a state.
func (e *evidence) mentionsMoments() bool {
	return e.mentions(partOptimizer) && (stateful().MatchString(e.source) || !plainSGD().MatchString(e.source))
}

func (e *evidence) mentions(p *part) bool {
	_, ok := e.lineWith(p)
	return ok
}

// evaluates are the tags of curves that an evaluation reports: they follow what it uses,
// and change nothing.
var evaluates = lazyregexp.New(`(?i)(?:^|[/_. -])(?:val|valid|validation|eval|evaluation|test|dev)(?:$|[/_. -])`)

// sourceWords are in scripts that have a part.
var sourceWords = map[*part]func() *regexp.Regexp{
	partDropout:   partDropout.words,
	partEnv:       lazyregexp.New(`(?i)\bgym(?:nasium)?\b|\b(?:Mlp|Cnn|MultiInput)Policy\b|\bmake_(?:vec_)?env\b|\benvs?\.(?:reset|step)\(`),
	partShuffle:   lazyregexp.New(`(?i)shuffle|permutation|randperm|sampler`),
	partRandom:    lazyregexp.New(`(?i)default_rng|RandomState|PRNGKey|augment|subsample|colsample|bagging|fraction`),
	partNorm:      lazyregexp.New(`(?i)batch_?norm`),
	partEMA:       partEMA.words,
	partAccum:     lazyregexp.New(`(?i)accum`),
	partData:      lazyregexp.New(`(?i)loader|dataset|\bdata\b|batch|iter\(`),
	partSchedule:  lazyregexp.New(`(?i)sched|warm_?up|cosine|lr_?decay|lr_lambda`),
	partOptimizer: lazyregexp.New(`(?i)adam|momentum|velocity|optim`),
}

// freshSeed is a seed that each start makes for itself.
var freshSeed = lazyregexp.New(`(?i)seed.*\b(?:time|time_ns|now|utcnow|urandom|getpid|token_bytes|randbits|uuid\d)\(|\b(?:time|time_ns|now|urandom|getpid)\(.*seed`)

// freshDataSeed is one of the order.
var freshDataSeed = lazyregexp.New(`(?i)data_?seed\s*=\s*[\w.(]*\b(?:time|time_ns|now|urandom|getpid|randbits)\(`)

// seedOfStart finds a seed that is another one at each start, so also after a restart.
func (e *evidence) seedOfStart() []Cause {
	line, ok := e.lineMatching(freshSeed())
	_, ofData := e.lineMatching(freshDataSeed())
	switch {
	case !ok:
		return nil
	case e.mentions(partShuffle) || ofData:
		return []Cause{{partShuffle.name, "each start makes its own, and a restart continues in another order; the script has: " + line}}
	}
	return []Cause{{partRandom.name, "each start makes its own seed; the script has: " + line}}
}

// draws are in lines that draw random numbers. A line that is not within a loop or a
// function does that once, at each start, as for the data.
var (
	draws  = lazyregexp.New(`(?i)\brandom\.|\brng\b|np\.random|torch\.rand|noise|gauss|normal\(`)
	within = lazyregexp.New(`^(?:\s|for\b|while\b)`)
)

// dropoutRate is where a script says how much is dropped, often nothing.
var dropoutRate = lazyregexp.New(`(?i)drop_?out\w*["']?(?:\s*:\s*float)?\s*[=:(,]\s*(?:type=float, *)?(?:default=)?(\d*\.?\d+)`)

// dropsNothing reports whether all rates in a text are 0, and there are some.
func dropsNothing(text string) bool {
	found := dropoutRate().FindAllStringSubmatch(text, -1)
	return len(found) > 0 && !slices.ContainsFunc(found, func(m []string) bool { return strings.Trim(m[1], "0.") != "" })
}

// lineWith returns the first line of the source that has a part, without comments
// and imports.
func (e *evidence) lineWith(p *part) (string, bool) {
	if p == partDropout && dropsNothing(e.source) {
		return "", false
	}
	words := sourceWords[p]()
	return e.lineWhere(func(line string) bool {
		switch p {
		case partDropout:
			return words.MatchString(line) && !dropsNothing(line)
		case partRandom:
			return words.MatchString(line) || within().MatchString(line) && draws().MatchString(line)
		}
		return words.MatchString(line)
	})
}

func (e *evidence) lineMatching(words *regexp.Regexp) (string, bool) {
	return e.lineWhere(words.MatchString)
}

func (e *evidence) lineWhere(has func(line string) bool) (string, bool) {
	for line := range strings.SplitSeq(e.source, "\n") {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "#") || strings.HasPrefix(text, "import ") || strings.HasPrefix(text, "from ") {
			continue
		}
		if has(line) {
			return text[:min(len(text), 80)], true
		}
	}
	return "", false
}
