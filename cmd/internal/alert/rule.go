package alert

import (
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Rule is a condition on the scalars of a run, made by [ParseRule].
type Rule struct {
	Text string // as it was written, but for spaces around it

	tags   func(tag string) bool // nil: the run as a whole
	points condition             // nil for a rule of silence
	silent time.Duration
}

// Sample is one scalar.
type Sample struct {
	Step     int64
	WallTime float64 // seconds since 1970
	Value    float64
}

// condition finds the first point at which it holds.
type condition interface {
	find(points iter.Seq[Sample]) (Sample, bool)
}

// ParseRule reads a rule, whose language is that of the package's documentation.
func ParseRule(text string) (*Rule, error) {
	p := parser{text: text, rest: strings.TrimSpace(text)}
	r := &Rule{Text: p.rest}
	tag, err := p.tag()
	if err != nil {
		return nil, err
	}
	if tag.plain == "run" && p.words("is", "silent", "for") {
		r.silent, err = p.duration()
		return r, p.end(err)
	}
	r.tags = tag.matches
	switch {
	case p.words("has", "no", "new", "point", "for"), p.words("is", "silent", "for"):
		r.silent, err = p.duration()
	default:
		r.points, err = p.condition()
	}
	return r, p.end(err)
}

// parser takes words off the front of a rule.
type parser struct{ text, rest string }

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("rule %q: %s", p.text, fmt.Sprintf(format, args...))
}

// end returns err, or that something is left over.
func (p *parser) end(err error) error {
	if err == nil && p.rest != "" {
		return p.errorf("%q is left over at the end", p.rest)
	}
	return err
}

// peek returns the next word.
func (p *parser) peek() string {
	if end := strings.IndexAny(p.rest, " \t"); end >= 0 {
		return p.rest[:end]
	}
	return p.rest
}

func (p *parser) skip(n int) { p.rest = strings.TrimLeft(p.rest[n:], " \t") }

// words takes the given words, all or none.
func (p *parser) words(want ...string) bool {
	before := p.rest
	for _, w := range want {
		word := p.peek()
		if !strings.EqualFold(word, w) {
			p.rest = before
			return false
		}
		p.skip(len(word))
	}
	return true
}

// tagPattern is what a rule is about.
type tagPattern struct {
	plain   string // a tag without quotes
	matches func(string) bool
}

func (p *parser) tag() (t tagPattern, err error) {
	switch {
	case p.rest == "":
		return t, p.errorf("is empty; want one like `loss is NaN`")
	case p.rest[0] == '/':
		return p.pattern()
	case p.rest[0] == '"':
		quoted, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return t, p.errorf("the tag's quote is not closed")
		}
		tag, _ := strconv.Unquote(quoted) // it is quoted well
		p.skip(len(quoted))
		return tagPattern{matches: func(s string) bool { return s == tag }}, nil
	}
	tag := p.peek()
	p.skip(len(tag))
	return tagPattern{plain: tag, matches: func(s string) bool { return s == tag }}, nil
}

// pattern takes a regular expression between slashes, which may have slashes too.
func (p *parser) pattern() (t tagPattern, err error) {
	end := strings.Index(p.rest, "/ ")
	if end < 1 {
		return t, p.errorf("the regular expression does not end in a slash; write a tag that begins with one in double quotes")
	}
	re, err := regexp.Compile(p.rest[1:end])
	if err != nil {
		return t, p.errorf("%v", err)
	}
	p.skip(end + 1)
	return tagPattern{matches: re.MatchString}, nil
}

// conditionHelp ends the errors of rules that are not understood.
const conditionHelp = "want TAG is NaN, is Inf, is not finite, < N, > N, stalls DURATION, stops rising for DURATION, " +
	"stops falling for DURATION, rises by N% over K steps, falls by N% over K steps, or has no new point for DURATION"

func (p *parser) condition() (condition, error) {
	switch {
	case p.words("is", "nan"):
		return valueIs{isNaN}, nil
	case p.words("is", "inf"), p.words("is", "infinite"):
		return valueIs{isInf}, nil
	case p.words("is", "not", "finite"):
		return valueIs{isNotFinite}, nil
	case p.words("stalls"):
		return p.stall(true, true)
	case p.words("stops", "rising"):
		return p.stall(true, false)
	case p.words("stops", "falling"):
		return p.stall(false, true)
	case p.words("rises", "by"):
		return p.change(1)
	case p.words("falls", "by"):
		return p.change(-1)
	}
	for _, sign := range []string{"<=", ">=", "<", ">"} {
		if strings.HasPrefix(p.rest, sign) {
			p.skip(len(sign))
			n, err := p.number()
			return valueIs{comparisons[sign](n)}, err
		}
	}
	if p.rest == "" {
		return nil, p.errorf("says nothing about the tag; %s", conditionHelp)
	}
	return nil, p.errorf("%q is not understood; %s", p.rest, conditionHelp)
}

func (p *parser) number() (float64, error) {
	word := p.peek()
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || n != n {
		return 0, p.errorf("want a number, got %q", word)
	}
	p.skip(len(word))
	return n, nil
}

// day is the unit that package time does not know.
const day = 24 * time.Hour

func (p *parser) duration() (time.Duration, error) {
	word := p.peek()
	days, rest, ok := strings.Cut(word, "d")
	total := time.Duration(0)
	if n, err := strconv.ParseFloat(days, 64); ok && err == nil {
		total = time.Duration(n * float64(day))
	} else {
		rest = word
	}
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil {
			return 0, p.errorf("want a duration like 90s, 15m, 1h30m or 2d, got %q", word)
		}
		total += more
	}
	if total <= 0 {
		return 0, p.errorf("want a duration above zero, got %q", word)
	}
	p.skip(len(word))
	return total, nil
}

// span takes a number of steps or a duration.
func (p *parser) span() (span, error) {
	p.words("for")
	before := p.rest
	if n, err := p.number(); err == nil {
		if !p.words("steps") && !p.words("step") || n < 1 || n != float64(int64(n)) {
			return span{}, p.errorf("want a duration or a number of steps, got %q", before)
		}
		return span{steps: int64(n)}, nil
	}
	d, err := p.duration()
	return span{seconds: d.Seconds()}, err
}

func (p *parser) stall(rising, falling bool) (condition, error) {
	s, err := p.span()
	return stall{rising, falling, s}, err
}

func (p *parser) change(sign float64) (condition, error) {
	word := p.peek()
	number, relative := strings.CutSuffix(word, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) {
		return nil, p.errorf("want a number above zero, got %q", word)
	}
	p.skip(len(word))
	if !relative {
		relative = p.words("%")
	}
	if !p.words("over") {
		return nil, p.errorf("want `over` and a number of steps or a duration, got %q", p.rest)
	}
	s, err := p.span()
	if relative {
		n /= 100
	}
	return change{sign: sign, by: n, relative: relative, over: s}, err
}
