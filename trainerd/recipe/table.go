package recipe

import (
	"regexp"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// table reads progress that is printed as a table. There are two kinds. In one the
// names come first, in a heading, and each row has the numbers of a step:
//
//	epoch  train_loss  valid_loss
//	    0       2.302       2.291
//
// Columns are separated by spaces, commas, tabs or bars. In the other, a box for each
// step, each line has a name and a number, and may be indented below a group's name:
//
//	| train/             |      |
//	|    loss            | 0.25 |
//	|    total_timesteps | 2048 |
//	-----------------------------
type table struct {
	names []string // of the columns, nil before a heading
	comma bool     // that sets them apart
	place int      // the column that says where the training is

	box   *match // what the lines of a box have said so far
	group string // that the names of a box are below
}

const (
	// maxColumns bounds the columns of a table, and the lines of a box.
	maxColumns = 64
	// boxWidth is the number of cells in a line of a box: a name and a number.
	boxWidth = 2
)

var (
	// rowBar is a progress bar after a row.
	rowBar = lazyregexp.New(`:\s*\d+%[\s|].*$`)
	// rule is a line that is drawn below a heading, or around a box.
	rule = lazyregexp.New(`^[-=+|: ┌┬┐└┴┘├┼┤─━]*[-=─━]{3}[-=+|: ┌┬┐└┴┘├┼┤─━]*$`)
	// columnGap sets apart columns whose names have spaces.
	columnGap = lazyregexp.New(`\t+ *|  +`)
	// columnName is what the heading of a column looks like.
	columnName = lazyregexp.New(`^(?:#|[A-Za-z][\w./@()' %:#-]*)$`)
	// hasNumber is what a name with its number looks like.
	hasNumber = lazyregexp.New(`[ :=][-+]?\d`)
	// cell is a number with a unit, a mark for a missing one, or a time.
	cell = lazyregexp.New(`^(?:[-+]?(?:\d[\d.,:]*|\.\d+)(?:[eE][-+]?\d+)?(?: ?[%a-zA-Z/]{0,4})|(?:\d[\d.]* ?(?:ms|[dhms])(?:, *)?)+|[-+]?(?i:nan|inf)|-+|(?i:n/?a|none))$`)
	// ofAll is a count with the number of all.
	ofAll = lazyregexp.New(`^(\d+)/\d+$`)
	// plainNumber is a cell that is a number alone, or one of percent.
	plainNumber = lazyregexp.New(`^` + number + `%?$`)
	// withUnit is a number with the unit that a table has set apart.
	withUnit = lazyregexp.New(`^` + number + ` (ms|s|K|M)$`)
	// remark is what a heading or a count has in parentheses.
	remark = lazyregexp.New(` \([^()]*\)$`)
)

// measured are words in headings of values by which a training is judged.
var measured = []string{"loss", "acc", "reward", "return", "error", "cost", "perplexity", "ppl", "mse", "mae", "auc", "f1", "bleu", "psnr", "iou", "elbo", "nll", "score", "bpc", "fid", "wer", "fitness", "deviance", "rays"}

// isMeasured reports whether a heading has one of them.
func isMeasured(text string) bool {
	folded := foldCase(text)
	return slices.ContainsFunc(measured, func(word string) bool { return strings.Contains(folded, word) })
}

// epochNames are the names of a column with epochs.
var epochNames = []string{"epoch", "epochs", "ep", "e"}

// countNames are the names of a column with steps, besides stepNames.
var countNames = []string{"#", "steps", "iterations", "totalenvinteracts", "total_env_steps", "generation", "gen"}

// tableLine is the form of a row. It drops columns that say how long the row took, or on which
// device.
var tableLine = Line{
	recipe: "plain",
	form:   regexp.MustCompile(`(?P<values>.*)`),
	Drop:   []string{"time", "dur", "eta", "Remaining_Time", "GPU_mem", "Size", "Instances", "time_elapsed"},
}

// tableBar is that of a row that is drawn again and again.
var tableBar = func() Line { l := tableLine; l.Bar = true; return l }()

// read takes a line. It returns what that says, nil for nothing yet, and whether it is
// part of a table.
func (t *table) read(text string) (m *match, taken bool) {
	if t == nil {
		return nil, false
	}
	if rule().MatchString(text) {
		return t.endBox(), true
	}
	line := &tableLine
	if strings.Contains(text, "%") {
		if bare := rowBar().ReplaceAllString(text, ""); bare != text {
			text, line = bare, &tableBar
		}
	}
	if cells := barred(text); len(cells) == boxWidth && t.addToBox(cells) {
		return nil, true
	}
	if m := t.row(text, line); m != nil {
		return m, true
	}
	t.heading(text)
	return nil, false
}

// barred returns the cells of a line between bars, nil for another.
func barred(text string) []string {
	inner := strings.TrimSpace(text)
	if !strings.HasPrefix(inner, "|") && !strings.HasPrefix(inner, "│") {
		return nil
	}
	return strings.FieldsFunc(inner, func(r rune) bool { return r == '|' || r == '│' })
}

// heading takes the names of columns, if a line has them.
func (t *table) heading(text string) {
	if !isMeasured(text) {
		return
	}
	cells, comma := barred(text), false
	switch {
	case cells != nil:
	case strings.Contains(text, ","):
		cells, comma = strings.Split(text, ","), true
	case columnGap().MatchString(text):
		cells = columnGap().Split(text, -1)
	default:
		cells = strings.Fields(text)
	}
	if len(cells) < 2 || len(cells) > maxColumns {
		return
	}
	place, measures := -1, false
	for i, name := range cells {
		cells[i] = strings.Trim(strings.TrimSpace(name), `"`)
		if !columnName().MatchString(cells[i]) || cell().MatchString(cells[i]) || hasNumber().MatchString(cells[i]) {
			return
		}
		measures = measures || isMeasured(cells[i])
		if rankOf(cells[i]) >= 0 && (place < 0 || rankOf(cells[i]) < rankOf(cells[place])) {
			place = i
		}
	}
	if place >= 0 && measures {
		t.names, t.comma, t.place = cells, comma, place
	}
}

// rankOf returns how certain it is that a column gives the position of the training, 0 for the most
// certain, -1 if it does not. Steps come before epochs.
func rankOf(name string) int {
	name = strings.ToLower(remark().ReplaceAllString(name[strings.LastIndexByte(name, '/')+1:], ""))
	return slices.Index(slices.Concat(stepNames, countNames, epochNames), name)
}

// row returns the numbers of a row, or nil if a line is not a row below the heading.
func (t *table) row(text string, line *Line) *match {
	cells := barred(text)
	switch {
	case cells != nil:
	case t.comma:
		cells = strings.Split(text, ",")
	default:
		if cells = strings.Fields(text); len(cells) != len(t.names) {
			cells = columnGap().Split(text, -1)
		}
	}
	if len(cells) != len(t.names) {
		return nil
	}
	m := &match{line: line, step: noStep, epoch: noStep, total: noStep}
	for i, text := range cells {
		text = strings.TrimSpace(text)
		switch {
		case i == t.place && !m.at(t.names[i], text):
			return nil
		case i == t.place, rankOf(t.names[i]) >= 0 && ofAll().MatchString(text):
		case text != "" && !cell().MatchString(text):
			return nil
		case rankOf(t.names[i]) < 0:
			m.addCell(t.names[i], text)
		}
	}
	if len(m.values) == 0 {
		return nil
	}
	return m
}

// at takes the position of the training from a cell; it returns false if the cell has no count.
func (m *match) at(name, text string) bool {
	text = remark().ReplaceAllString(text, "")
	if found := ofAll().FindStringSubmatch(text); found != nil {
		text = found[1]
	}
	n := whole(text)
	if slices.Contains(epochNames, strings.ToLower(name)) {
		m.epoch = n
	} else {
		m.step = n
	}
	return n != noStep
}

// addToBox takes a line of a box; it is false for one that is not part of it.
func (t *table) addToBox(cells []string) bool {
	name, text := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
	if !columnName().MatchString(name) || text != "" && columnName().MatchString(text) && !cell().MatchString(text) {
		return false
	}
	switch {
	case t.box == nil:
		t.box, t.group = &match{line: &tableLine, step: noStep, epoch: noStep, total: noStep}, ""
	case len(t.box.values) > maxColumns:
		return true
	}
	if text == "" {
		t.group = strings.TrimSuffix(name, "/") + "/"
		return true
	}
	if t.group != "" && !strings.HasPrefix(cells[0], "  ") {
		t.group = ""
	}
	if rank := rankOf(name); rank >= 0 {
		t.box.placeBy(name, text)
		return true
	}
	if !slices.Contains(tableLine.Drop, name) {
		t.box.addCell(t.group+name, text)
	}
	return true
}

// addCell adds the number of a cell, if it is one.
func (m *match) addCell(name, text string) {
	factor := map[string]float64{"K": 1e3, "M": 1e6}
	if found := withUnit().FindStringSubmatch(text); found != nil {
		if v, ok := parseNumber(found[1]); ok {
			m.value(name, v*max(factor[found[2]], 1))
		}
	} else if plainNumber().MatchString(text) {
		m.add(name, strings.TrimSuffix(text, "%"))
	}
}

// placeBy takes the position of the training from a line of a box, which may have several counts:
// the most certain one wins.
func (m *match) placeBy(name, text string) {
	rank := int64(rankOf(name))
	if m.step != noStep && m.total <= rank {
		return
	}
	before := *m
	if !m.at(name, text) {
		*m = before
		return
	}
	if m.step != before.step {
		m.total = rank // of what has given the step, until the box ends
	}
}

// endBox returns what a box has said at its end.
func (t *table) endBox() *match {
	m := t.box
	t.box = nil
	if m == nil || len(m.values) == 0 || m.step == noStep && m.epoch == noStep {
		return nil
	}
	m.total = noStep
	if m.step != noStep {
		m.epoch = noStep
	}
	return m
}
