package found

import (
	"iter"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// isForeign reports whether a name is not a checkpoint of the program whatever the pattern says: a
// file being written, or a file that trainerd or TensorFlow keeps in a logdir.
func isForeign(name string) bool {
	base := path.Base(name)
	if integrity.IsUnfinished(base) || checkpoint.IsPin(base) || atomicfile.IsTemp(base) {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || part == checkpoint.DamagedDir || isOwnFolder(part) {
			return true
		}
	}
	return strings.Contains(base, "tfevents") || strings.HasPrefix(base, "trainerd.") ||
		base == "checkpoint" || strings.HasPrefix(base, "run-report.")
}

var (
	namedStep = lazyregexp.New(`(?i)(?:^|[^a-z])(?:global_?)?(?:step|iter(?:ation)?)[-_=]?(\d+)`)
	numbers   = lazyregexp.New(`\d+(?:\.\d+)*`)
	shardTail = lazyregexp.New(`\.(?:index|meta|data-\d{5}-of-\d{5})$`)
	extension = lazyregexp.New(`(?:\.[A-Za-z][A-Za-z0-9]*)+$`)
	// metricHead ends what comes before the value of a metric, versionHead before
	// the number that distinguishes files of one name, or of one step.
	metricHead  = lazyregexp.New(`(?i)(?:loss|acc|accuracy|auc|f1|score|ppl|perplexity|bleu|rouge|wer|cer|map|iou|mse|mae|rmse|psnr|reward|return)[-_=:@]?-?$`)
	versionHead = lazyregexp.New(`(?i)(?:[-_.]v|rank[-_]?|shard[-_]?)$`)
	// undated matches names of a state that is always the newest, or the best: the number in a
	// preceding word, as in yolov4_last.weights and resnet50_best.pt, belongs to the model's name.
	undated = lazyregexp.New(`(?i)[-_.](?:last|latest|newest|current|best|final)$`)
	inWord  = lazyregexp.New(`[A-Za-z]$`)
	// unitOfStep is what follows the step in sac_280k.zip.
	unitOfStep = lazyregexp.New(`^[kKM](?:[^A-Za-z]|$)`)
	// epochNumber is a number that counts epochs, and epochWord what may follow one.
	epochNumber = lazyregexp.New(`(?i)(?:^|[^a-z])ep(?:och)?s?[-_=]?\d+$`)
	epochWord   = lazyregexp.New(`(?i)^[-_]?ep(?:och)?s?(?:[^a-z]|$)`)
	// timeStamp is a date, with or without a time, or the seconds since 1970: when a file
	// was written, or a program started.
	timeStamp = lazyregexp.New(`(?:^|\D)20\d\d(?:[-_.]\d\d[-_.]\d\d(?:[-_T .]+\d\d[-_:.h]?\d\d(?:[-_:.m]?\d\d)?)?|\d{4}[-_T ]\d\d[-_:.]?\d\d(?:[-_:.]?\d\d)?)(?:\D|$)` +
		`|(?:^|\D)1[5-9]\d{8}(?:\.\d+)?(?:\D|$)|(?:^|[^A-Za-z])(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\d\d_\d\d-\d\d-\d\d`)
	// runFolder are names of folders that a program makes for each of its starts.
	runFolder = lazyregexp.New(`(?i)^(?:version|run|exp(?:eriment)?|attempt|trial)[-_]?\d+$|^\d{2,4}-\d{2}-\d{2}|^\d{2}[-_:]\d{2}[-_:]\d{2}$|^20\d{6}[-_T]?\d*`)
)

// stepEnd returns the part of a base name up to the end of its step, and the step's digits: what
// the name calls a step, or else the last number that is not a time, metric, decimal or version.
func stepEnd(base string) (head, digits string) {
	stem := shardTail().ReplaceAllString(base, "")
	if m := namedStep().FindStringSubmatchIndex(stem); m != nil {
		return stem[:m[3]], stem[m[2]:m[3]]
	}
	stem = extension().ReplaceAllString(stem, "")
	hasWord := undated().MatchString(stem)
	for at := range lastCounts(stem) {
		if hasWord && inWord().MatchString(stem[:at[0]]) && !epochNumber().MatchString(stem[:at[1]]) {
			continue
		}
		return stem[:at[1]], stem[at[0]:at[1]]
	}
	return "", ""
}

// lastCounts returns the positions of numbers in a part of a name that may count something, the
// last first: those that are not a time, metric, decimal or version.
func lastCounts(part string) iter.Seq[[]int] {
	bare := timeStamp().ReplaceAllStringFunc(part, func(when string) string { return strings.Repeat("-", len(when)) })
	return func(yield func([]int) bool) {
		for _, at := range slices.Backward(numbers().FindAllStringIndex(bare, -1)) {
			before, number := part[:at[0]], part[at[0]:at[1]]
			isCount := !strings.Contains(number, ".") && !metricHead().MatchString(before) && !versionHead().MatchString(before)
			if isCount && !yield(at) {
				return
			}
		}
	}
}

// NamesTime reports whether a name contains a time, like that of a folder which a program makes for
// each of its starts.
func NamesTime(name string) bool { return timeStamp().MatchString(name) }

// runOf returns the folders of a name that belong to one start of the program, ""
// for none.
func runOf(name string) (run string) {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if runFolder().MatchString(part) || NamesTime(part) {
			run += part + "/"
		}
	}
	return run
}

// countsEpochs reports whether the number in a base name is an epoch.
func countsEpochs(base string) bool {
	head, digits := stepEnd(base)
	return digits != "" && (epochNumber().MatchString(head) || epochWord().MatchString(base[len(head):]))
}

// StepOf returns the step in the name of a file or folder, [NoStep] for none.
func StepOf(name string) int64 { return stepOfName(filepath.Base(name)) }

// stepOfName returns the step in the base name of a checkpoint, or NoStep.
func stepOfName(base string) int64 {
	head, digits := stepEnd(base)
	step, err := strconv.ParseInt(digits, 10, 64)
	unit := int64(1)
	switch after := unitOfStep().FindString(base[len(head):]); {
	case strings.HasPrefix(after, "M"):
		unit = 1e6
	case after != "":
		unit = 1e3
	}
	if err != nil || step > math.MaxInt64/unit {
		return NoStep
	}
	return step * unit
}

// nameOf returns the name of a checkpoint with these files: the only file, the common beginning up
// to the step, or the first file.
func nameOf(files []string) string {
	first := files[0]
	if len(files) == 1 && !shardTail().MatchString(first) {
		return first
	}
	head, _ := stepEnd(path.Base(first))
	prefix := path.Join(path.Dir(first), head)
	for _, f := range files {
		if head == "" || !strings.HasPrefix(f, prefix) {
			return first
		}
	}
	return prefix
}
