package child

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// isForeign reports whether a name is not a checkpoint of the program whatever the
// pattern says: what is being written, and what trainerd and TensorFlow keep in
// a logdir.
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
	namedStep = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:global_?)?step[-_=]?(\d+)`)
	numbers   = regexp.MustCompile(`\d+`)
	shardTail = regexp.MustCompile(`\.(?:index|meta|data-\d{5}-of-\d{5})$`)
	extension = regexp.MustCompile(`(?:\.[A-Za-z][A-Za-z0-9]*)+$`)
)

// stepEnd returns the part of a base name up to the end of its step, and the
// step's digits.
func stepEnd(base string) (head, digits string) {
	stem := shardTail.ReplaceAllString(base, "")
	if m := namedStep.FindStringSubmatchIndex(stem); m != nil {
		return stem[:m[3]], stem[m[2]:m[3]]
	}
	stem = extension.ReplaceAllString(stem, "")
	all := numbers.FindAllStringIndex(stem, -1)
	if len(all) == 0 {
		return "", ""
	}
	last := all[len(all)-1]
	return stem[:last[1]], stem[last[0]:last[1]]
}

// stepOfName returns the step in the base name of a checkpoint, or NoStep.
func stepOfName(base string) int64 {
	_, digits := stepEnd(base)
	step, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return NoStep
	}
	return step
}

// nameOf returns what names a checkpoint with these files: the only one, what
// all begin with up to the step, or the first.
func nameOf(files []string) string {
	first := files[0]
	if len(files) == 1 && !shardTail.MatchString(first) {
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
