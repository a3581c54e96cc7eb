package recipe

import (
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// beginRows takes a heading: the lines after it have a name and a number each.
//
//	[step=100/5000,epoch=1]
//	    train/CE loss=2.31
//	    optim/total grad norm=0.42
func (r *Reader) beginRows(m *match) {
	if m.step != noStep {
		r.step, r.inSteps = r.progress(m), true
	}
	if r.step != noStep {
		r.rows = m.line
	}
}

// readRow takes a line below a heading; it is false for one that is not a row.
func (r *Reader) readRow(text string) (p *Point, taken bool) {
	if r.rows == nil || strings.TrimSpace(text) == "" { // which does not end them
		return nil, false
	}
	m := &match{line: r.rows}
	if found := r.rows.rows.FindStringSubmatch(text); found != nil {
		m.add(found[1], found[2])
	}
	if len(m.values) == 0 {
		r.rows = nil
		return nil, false
	}
	return &Point{Step: r.step, Values: m.values, Recipe: r.rows.recipe}, true
}

// object is one of JSON, or a dict of Python, that is printed over several lines.
//
//	{'accuracy': 0.5,
//	 'loss': 2.31,
//	 'step': 100}
type object struct {
	text string
	open int // its braces that are not closed yet
}

var (
	// member is what the lines of an object begin with.
	member = lazyregexp.New(`^(?:["'{}\[\]()]|[-+.]?\d|[A-Za-z][\w.]*(?:\(|,?$))`)
	// saysStep and saysLoss are what an object has that reports progress: a config has
	// numbers, too.
	saysStep = lazyregexp.New(`["'](?:\w+/)?(?:global_step|_?step|iteration|iter|epoch)["']:\s*["']?\d[\d_]*(?:\.\d+)?["']?\s*[,}]`)
	saysLoss = lazyregexp.New(`["'][^"']*(?i:loss|acc|reward|return|error|perplexity|ppl|score)[^"']*["']:\s*(?:["']|\w+(?:\.\w+)*\()?(?:[-+.]?\d|(?i:nan|inf))`)
)

// add takes a line. It returns the whole object if the line is its last one, and the line itself if
// it is part of none; waiting says that the object has not ended.
func (o *object) add(text string) (whole string, waiting bool) {
	if o.open > 0 && !member().MatchString(text) || len(o.text)+len(text) > maxLine {
		*o = object{}
	}
	if o.open == 0 && !strings.HasPrefix(text, "{") {
		return text, false
	}
	before := o.text
	o.text = strings.TrimSpace(before + " " + text)
	if o.open += strings.Count(text, "{") - strings.Count(text, "}"); o.open > 0 {
		return "", true
	}
	whole = o.text
	*o = object{}
	if before != "" && !(saysStep().MatchString(whole) && saysLoss().MatchString(whole)) {
		return "", false
	}
	return whole, false
}

// note is a message of Julia's logger that takes several lines, and has not ended:
//
//	┌ Info: training
//	│   epoch = 3
//	└   loss = 0.5
type note struct{ text string }

// add takes a line. It returns the whole message if the line is its last one, and the line itself
// if it is part of none; waiting says that the message has not ended.
func (n *note) add(text string) (whole string, waiting bool) {
	begins, isFirst := strings.CutPrefix(text, "┌ ")
	middle, isMiddle := strings.CutPrefix(text, "│ ")
	last, isLast := strings.CutPrefix(text, "└ ")
	before := n.text
	n.text = ""
	switch {
	case isFirst:
		n.text = begins
		return "", true
	case before == "" || len(before)+len(text) > maxLine:
		return text, false
	case isMiddle:
		n.text = before + ", " + strings.TrimSpace(middle)
		return "", true
	case isLast:
		return before + ", " + strings.TrimSpace(last), false
	}
	return text, false
}
