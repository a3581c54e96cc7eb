package child

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Limits of a report. A line beyond them is not a report.
const (
	MaxLine   = 64 << 10 // bytes of a line
	maxValues = 1024     // numbers of a report
	maxTag    = 512      // bytes of a name
	maxDepth  = 16       // objects within objects
)

// Report is the contents of a line of a program.
type Report struct {
	Step   int64
	Time   time.Time // zero for the time of its arrival
	Values []Value
}

// saidAt returns the program's own time of a report if it has one, otherwise the time of its
// arrival.
func (r *Report) saidAt(arrived time.Time) time.Time {
	if r.Time.IsZero() {
		return arrived
	}
	return r.Time
}

// Value is one number of a [Report].
type Value struct {
	Tag   string
	Value float64
}

// Value returns the number with a name.
func (r *Report) Value(tag string) (v float64, ok bool) {
	for _, x := range r.Values {
		if x.Tag == tag {
			return x.Value, true
		}
	}
	return 0, false
}

// evaluated matches names of values that come from an evaluation.
var evaluated = lazyregexp.New(`(?i)(?:^|[/_.-])(?:val|valid|validation|eval|test)(?:[/_.-]|$)`)

// Loss returns the loss: the first number named "loss", "train/loss", "train_loss" or "total_loss",
// in this order, otherwise the first one whose name contains "loss", such as "lm_loss", and does
// not come from an evaluation.
func (r *Report) Loss() (v float64, ok bool) {
	for _, tag := range []string{"loss", "train/loss", "train_loss", "total_loss"} {
		if v, ok = r.Value(tag); ok {
			return v, true
		}
	}
	for _, x := range r.Values {
		if strings.Contains(strings.ToLower(x.Tag), "loss") && !evaluated().MatchString(x.Tag) {
			return x.Value, true
		}
	}
	return 0, false
}

// ParseReport parses a line. pure says that the line is a report and nothing
// else, so that nobody needs to see it. The report is nil if the line is not
// one.
func ParseReport(line string) (r *Report, pure bool) {
	line = strings.TrimSpace(line)
	switch {
	case len(line) > MaxLine || !utf8.ValidString(line):
		return nil, false
	case strings.HasPrefix(line, "{"):
		r = parseJSON(line)
		return r, r != nil
	case strings.Contains(line, "step="):
		return parsePairs(line)
	}
	return nil, false
}

// collector makes a report of names and numbers.
type collector struct {
	report Report
	step   float64
	rank   int // of the key that has given the step, 0 for none
}

// The keys that mean the step, by rank.
var stepRank = map[string]int{"step": 1, "global_step": 2}

func (c *collector) add(name string, v float64) {
	if rank := stepRank[name]; rank > 0 {
		if rank >= c.rank {
			c.rank, c.step = rank, v
		}
		return
	}
	if name == "" || len(name) > maxTag {
		return
	}
	c.report.Values = append(c.report.Values, Value{name, v})
}

// done returns the report, or nil when there is none with a step.
func (c *collector) done() *Report {
	step, ok := wholeStep(c.step)
	if c.rank == 0 || !ok || len(c.report.Values) > maxValues {
		return nil
	}
	c.report.Step = step
	return &c.report
}

// wholeStep returns v as a step. Numbers from 2^53 on are not exact any more.
func wholeStep(v float64) (step int64, ok bool) {
	return int64(v), v >= 0 && v < 1<<53 && v == math.Trunc(v)
}

// grouped matches a step whose digits are in groups, as Python's {step:,} prints it.
var grouped = lazyregexp.New(`(?:^|[\s,;])(?:global_)?step=([1-9]\d{0,2}(?:,\d{3})+)(?:[\s,;]|$)`)

// ungroup removes the commas from a step, which would otherwise end it.
func ungroup(line string) string {
	at := grouped().FindStringSubmatchIndex(line)
	if at == nil {
		return line
	}
	return line[:at[2]] + strings.ReplaceAll(line[at[2]:at[3]], ",", "") + line[at[3]:]
}

// parsePairs reads a line of key=value.
func parsePairs(line string) (r *Report, pure bool) {
	var c collector // a number that is too large for a float64 is infinite
	pure, line = true, ungroup(line)
	for len(line) > 0 {
		var word string
		word, line = cutWord(line)
		if word == "" {
			continue
		}
		key, text, ok := strings.Cut(word, "=")
		v, err := strconv.ParseFloat(text, 64)
		if !ok || !isKey(key) || err != nil && !errors.Is(err, strconv.ErrRange) {
			pure = false
			continue
		}
		c.add(key, v)
	}
	r = c.done()
	return r, pure && r != nil
}

// cutWord cuts the first word off a line: up to a space, comma or semicolon
// that is not in quotes.
func cutWord(line string) (word, rest string) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '"':
			quoted = !quoted
		case '\\':
			if quoted {
				i++
			}
		case ' ', '\t', ',', ';':
			if !quoted {
				return line[:i], line[i+1:]
			}
		}
	}
	return line, ""
}

// isKey reports whether a word can be the name of a curve.
func isKey(s string) bool {
	const also = "_./:-@%+"
	for i, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= utf8.RuneSelf:
		case i > 0 && (c >= '0' && c <= '9' || strings.ContainsRune(also, c)):
		default:
			return false
		}
	}
	return s != ""
}

// matchPattern reads a line by a pattern with named groups. In their names "__"
// means "/".
func matchPattern(p *regexp.Regexp, line string) *Report {
	if len(line) > MaxLine {
		return nil
	}
	found := p.FindStringSubmatch(strings.ToValidUTF8(line, "\uFFFD")) // of another character set
	if found == nil {
		return nil
	}
	var c collector
	for i, name := range p.SubexpNames() {
		v, err := strconv.ParseFloat(strings.TrimSpace(found[i]), 64)
		if name == "" || err != nil && !errors.Is(err, strconv.ErrRange) {
			continue
		}
		c.add(strings.ReplaceAll(name, "__", "/"), v)
	}
	return c.done()
}
