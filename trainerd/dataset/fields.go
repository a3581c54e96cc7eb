package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxID bounds ids: a float32 holds all integers up to it.
const maxID = 1 << 24

// parseFeature returns the number or id in a field, or what is wrong with it.
func (o Options) parseFeature(field string) (v float32, reason, hint string) {
	if !o.IDs {
		return parseFeature(field)
	}
	if field == "" {
		return -1, "", ""
	}
	id, err := strconv.ParseInt(field, 10, 64)
	if err != nil || id < -maxID || id >= maxID {
		return 0, fmt.Sprintf("%s is not an id", clip(field)), fmt.Sprintf("ids are integers from 0 to %d; leave the field empty for none", maxID-1)
	}
	return float32(id), "", ""
}

// parseFeature returns the number in a field, or what is wrong with it.
func parseFeature(field string) (v float32, reason, hint string) {
	if field == "" {
		return 0, "the field is empty", "fill in a number or remove the row"
	}
	f, err := strconv.ParseFloat(field, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Sprintf("%s is beyond the range of a float32", clip(field)), "scale the column before"
	case err != nil:
		return 0, fmt.Sprintf("%s is not a number", clip(field)), "features are numbers with a decimal point, such as -1.5e3"
	case math.IsNaN(f) || math.IsInf(f, 0):
		return 0, fmt.Sprintf("%s is not a finite number", clip(field)), "fill in a number or remove the row"
	}
	return float32(f), "", ""
}

// clip quotes a field for a message, cut when it is very long.
func clip(field string) string {
	const longest = 40
	if len(field) > longest {
		return strconv.Quote(strings.ToValidUTF8(field[:longest], "")) + "..."
	}
	return strconv.Quote(field)
}

// quoteNames lists column names for a message, leaving out the middle of a
// long list.
func quoteNames(names []string) string {
	const head, tail = 20, 3
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	if len(quoted) > head+tail {
		left := len(quoted) - head - tail
		quoted = slices.Concat(quoted[:head], []string{fmt.Sprintf("... %d more ...", left)}, quoted[len(quoted)-tail:])
	}
	return strings.Join(quoted, ", ")
}

// countClasses returns the number of classes. If the labels cannot be right,
// check says what the user should look at.
func (o Options) countClasses(labels []int64, check string) (int, *Error) {
	if o.Numbers {
		return 0, nil
	}
	if o.Classes > 0 {
		return o.Classes, nil
	}
	top := slices.Max(labels)
	switch {
	case top == 0:
		return 0, &Error{Reason: "every label is 0", Hint: "a classifier needs at least two classes; " + check}
	case top >= int64(max(len(labels), 2)):
		return 0, &Error{Reason: fmt.Sprintf("the greatest label is %d, but there are only %d rows", top, len(labels)),
			Hint: check + "; if it is, set model.classes"}
	}
	return int(top) + 1, nil
}

// checkClass says what is wrong with a class, "" when it is one.
func (o Options) checkClass(label int64) (reason, hint string) {
	switch {
	case label < 0:
		return fmt.Sprintf("the label %d is negative", label), "number the classes from 0 up"
	case o.Classes > 0 && label >= int64(o.Classes):
		return fmt.Sprintf("the label %d is out of range: model.classes = %d allows 0 to %d", label, o.Classes, o.Classes-1),
			"correct the label or model.classes"
	}
	return "", ""
}

// unwrapPath drops the file's name from an error; ours names it already.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
