package recipe

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// match is a line that a form fits.
type match struct {
	line               *Line
	step, epoch, total int64  // noStep where the line has none
	set                string // the part of the data that it is about, "" for the training
	values             []Value
}

// match returns what a form finds in a line, nil where it does not fit.
func (l *Line) match(text string) *match {
	found := l.form.FindStringSubmatchIndex(text)
	if found == nil {
		return nil
	}
	group := func(i int) string {
		if i < 0 || found[2*i] < 0 {
			return ""
		}
		return text[found[2*i]:found[2*i+1]]
	}
	named := func(name string) string { return group(l.form.SubexpIndex(name)) }
	m := &match{line: l, step: whole(named("step")), epoch: whole(named("epoch")), total: whole(named("total"))}
	values := named("values")
	if !l.needs.MatchString(values) || l.lacks != nil && l.lacks.MatchString(values) || l.Complete && m.step != m.total {
		return nil
	}
	if l.Object && !m.addObject(values) {
		return nil
	}
	for _, g := range l.named {
		m.add(g.name, group(g.at))
	}
	if at := l.form.SubexpIndex("values"); l.Sets && at > 0 && found[2*at] >= 0 {
		m.set = l.setOf(text, found[2*at])
	}
	for _, p := range l.pairsIn() {
		m.addPairs(p, values)
	}
	if l.saysValues() && len(m.values) == 0 {
		return nil
	}
	return m
}

// pairsIn returns what finds names and numbers in values.
func (l *Line) pairsIn() []*regexp.Regexp {
	if l.Object {
		return nil // its keys are the names
	}
	return l.pairs
}

// wordBefore is a word, and the space after it.
var wordBefore = lazyregexp.New(`[A-Za-z]\w* $`)

// addPairs adds the numbers that an expression finds, with their names. If a name occurs more than
// once, the word before it becomes part of it: "Actor Loss: 0.1 | Critic Loss: 0.2".
func (m *match) addPairs(p *regexp.Regexp, text string) {
	found := p.FindAllStringSubmatchIndex(text, -1)
	times := map[string]int{}
	for _, at := range found {
		times[m.line.tag(text[at[2]:at[3]])]++
	}
	for _, at := range found {
		name := text[at[2]:at[3]]
		if tag := m.line.tag(name); times[tag] > 1 && !m.line.drops(tag) {
			name = wordBefore().FindString(text[:at[2]]) + name
		}
		m.add(name, text[at[4]:at[5]])
	}
}

// partOfData is a word that says which part of the data a line is about, where it is not
// part of the name of a number: "[val] epoch 3", "validate step: 10", "Eval | ".
var partOfData = lazyregexp.New(`(?i)(?:^|[\s\[(|>-])(?:train(?:ing)?|(val)(?:id(?:ation|ate|ating)?)?|(eval)(?:uation|uate|uating)?|(test)(?:ing)?)` +
	`(?:\s*[\])|>:]|\s*(?:-\s*)?$|\s+\d+%|\s+(?:-\s+)?\W?(?:metrics?|results?|set|data(?:set|loader)?|step|epoch|ep|iter(?:ation)?|batch|after|at|on)(?:\W|$))`)

// setOf returns the part of the data that a line is about, by the last word for one before
// its first number: "validate step: 10 loss: 0.5". It is "" for the training. Its values
// begin at an index.
func (l *Line) setOf(text string, values int) (set string) {
	first := len(text)
	for _, p := range l.pairsIn() {
		for _, at := range p.FindAllStringSubmatchIndex(text[values:], -1) {
			if !l.drops(l.tag(text[values+at[2] : values+at[3]])) {
				first = min(first, values+at[2])
				break
			}
		}
	}
	for _, found := range partOfData().FindAllStringSubmatch(text[:first], -1) {
		set = strings.ToLower(found[1] + found[2] + found[3])
	}
	return set
}

// add adds a number, if it is one.
func (m *match) add(name, text string) {
	if v, ok := parseNumber(text); ok {
		m.value(name, v)
	}
}

// ofSet is a name that says which part of the data it is about.
var ofSet = lazyregexp.New(`(?i)(?:^|[_/.-])(?:train|training|val|valid|validation|eval|test)(?:[_/.-]|$)`)

// source is the name of a file of a program, whose number is that of the line which has logged
// something: solver.cpp:228.
var source = lazyregexp.New(`\.(?:py|jl|rs|go|cpp|cc|cu|hpp|java)$`)

// drops reports whether a name is not a curve, because its number gives the position of the
// training, or the source line that has logged it.
func (l *Line) drops(tag string) bool {
	return tag == "" || source().MatchString(tag) || slices.Contains(l.Drop, tag)
}

// value adds a number, if its name is a curve.
func (m *match) value(name string, v float64) {
	name = m.line.tag(name)
	if m.line.drops(name) {
		return
	}
	if m.set != "" && !ofSet().MatchString(name) {
		name = m.set + "/" + name
	}
	if !slices.ContainsFunc(m.values, func(v Value) bool { return v.Tag == name }) {
		m.values = append(m.values, Value{name, v})
	}
}

var (
	// grouped is a number whose thousands are set apart by commas or underscores.
	grouped = lazyregexp.New(`^[-+]?[1-9]\d{0,2}(?:[,_]\d{3})+(?:\.|[eE]|$)`)
	// decimalComma matches a number of a country that uses a decimal comma.
	decimalComma = lazyregexp.New(`^[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+(?:[eE]|$)`)
)

// withoutGroups removes what sets apart the thousands of a number.
var withoutGroups = strings.NewReplacer(",", "", "_", "")

// parseNumber reads a number as people and locales write it.
func parseNumber(text string) (float64, bool) {
	if !grouped().MatchString(text) && decimalComma().MatchString(text) {
		text = strings.ReplaceAll(strings.ReplaceAll(text, ".", ""), ",", ".")
	}
	v, err := strconv.ParseFloat(withoutGroups.Replace(text), 64)
	return v, err == nil || math.IsInf(v, 0)
}

// tag makes a name one of TensorFlow's: "val loss" is "val/loss", as are the
// losses of other programs.
func (l *Line) tag(words string) string {
	words = strings.TrimSpace(words)
	if l.Lower {
		words = strings.ToLower(words)
	}
	first, rest, ok := strings.Cut(words, " ")
	if set, isSet := sets[strings.TrimSuffix(first, "'s")]; ok && isSet {
		words = set + "/" + strings.TrimSpace(rest)
	}
	words = strings.ReplaceAll(words, "'s ", "/")
	return l.Prefix + strings.Join(strings.Fields(words), "_")
}

// sets are the parts of the data, by the words for them.
var sets = map[string]string{
	"train": "train", "training": "train", "trn": "train", "Train": "train", "Training": "train", "Trn": "train",
	"val": "val", "valid": "val", "vld": "val", "validation": "val", "Val": "val", "Valid": "val", "Validation": "val",
	"test": "test", "Test": "test", "eval": "eval", "Eval": "eval",
}

// maxCount bounds the numbers of steps and epochs, so that a product of two has
// no overflow.
const maxCount = 1 << 31

// whole returns a whole number, which may be in thousands or millions, as in "12K" or "1.2k";
// noStep for none.
func whole(text string) int64 {
	factor := 1.0
	for unit, times := range map[string]float64{"K": 1e3, "k": 1e3, "M": 1e6} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			text, factor = digits, times
		}
	}
	text = withoutGroups.Replace(text)
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return noStep
	}
	v, err := strconv.ParseFloat(text, 64)
	if v = math.Round(v*factor*1e6) / 1e6; err != nil || v != math.Trunc(v) || v > maxCount { // 1.23k is no binary fraction
		return noStep
	}
	return int64(v)
}
