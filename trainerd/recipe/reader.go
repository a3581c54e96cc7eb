package recipe

import (
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Point is the contents of a line: numbers at a step.
type Point struct {
	Step   int64
	Values []Value
	Recipe string // whose line it was
}

// Value is a number with its name.
type Value struct {
	Tag   string
	Value float64
}

const (
	// maxLine bounds the lines that are looked into.
	maxLine = 4 << 10
	// maxPending bounds the lines that wait for a step.
	maxPending = 16
	// noStep says that no line has given the position of the training.
	noStep = -1
)

// Reader understands the lines of one start of a program, using a recipe. The
// meaning of a line may depend on earlier ones: progress bars start over with
// each epoch, and some programs print numbers in one line and the step in
// another.
type Reader struct {
	mu      sync.Mutex
	lines   []Line
	learned *learned
	base    int64 // the step that the start resumes from

	stepState
	epochState
	barState
	heading heading         // above the lines
	marks   map[string]mark // by the line's form
	table   *table          // nil if tables are not read
	rows    *Line           // the heading that lines are below, nil for none
	object  object          // that has begun and not ended
	note    note
	held    *Point // what a bar says of its current step, or the last line of an epoch; nil for nothing
}

// NewReader returns a reader for a start that resumes from a step, 0 for none.
func (r *Recipe) NewReader(step int64) *Reader {
	reader := &Reader{
		lines: r.Lines, learned: r.learned, base: min(max(step, 0), maxCount), heading: heading{place: noStep}, marks: map[string]mark{},
		stepState: stepState{step: noStep, last: noStep}, epochState: epochState{epoch: noStep}, barState: barState{bars: map[string]*bar{}},
	}
	if r.Tables {
		reader.table = &table{}
	}
	return reader
}

// escapes are the sequences by which a program colours its lines and moves the
// cursor.
var escapes = lazyregexp.New("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[\b\x00]+")

// origin is what loguru says of the place in the source that has written a line.
var origin = lazyregexp.New(`(?:^|[\s|])[\w.]+:[\w<>.]+:\d+ - `)

// Read reads a line. It returns the point that the line completes, nil for none;
// its numbers may come from an earlier line.
func (r *Reader) Read(text string) *Point {
	if len(text) > maxLine || isBinary(text) {
		return nil
	}
	text = strings.ToValidUTF8(text, "\uFFFD") // of another character set, whose digits are the same
	blank := text != ""
	text = clean(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	text, waiting := r.note.add(text)
	if waiting {
		return nil
	}
	if text, waiting = r.object.add(text); waiting {
		return nil
	}
	if p, taken := r.readRow(text); taken {
		return p
	}
	if found, taken := r.table.read(text); found != nil {
		return r.take(found)
	} else if taken {
		return nil
	}
	if !strings.ContainsAny(text, "0123456789") {
		r.cleared = r.cleared || blank && text == ""
		r.clears = r.clears || r.cleared
		return nil
	}
	folded := foldCase(text)
	for i := range r.lines {
		if !r.lines[i].has.in(text, folded) {
			continue
		}
		if found := r.lines[i].match(text); found != nil {
			return r.take(found)
		}
	}
	return nil
}

// Flush returns the points that still wait for their step when the program has
// ended, one per call, then nil.
func (r *Reader) Flush() *Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.release(r.step); p != nil {
		return p
	}
	p := r.held
	r.held = nil
	return p
}

// Counted reports whether steps were made up by counting lines.
func (r *Reader) Counted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counted > 0
}

// Absolute reports whether the lines themselves give the position of the
// training, so that the first one of a start shows whether it has resumed.
func (r *Reader) Absolute() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counted == 0 && !r.rebased
}

// take gives a line its step.
func (r *Reader) take(m *match) *Point {
	p := &Point{Values: m.values, Recipe: m.line.recipe}
	switch {
	case m.line.rows != nil:
		r.beginRows(m)
		return nil
	case !m.line.saysValues():
		return r.place(m)
	case m.set != "" && (m.line.Bar || m.total != noStep):
		return r.evaluated(m, p)
	}
	switch m.line.Step {
	case stepOfLine:
		p.Step = r.stepOf(m)
		r.last = p.Step
		if m.line.Bar {
			return r.hold(p)
		}
		return p
	case stepOfEpoch:
		return r.takeEpoch(m, p)
	case stepOfNext:
		if r.step == noStep {
			break // there is no bar
		}
		if r.redrawn && len(r.pending) == 0 {
			p.Step, r.redrawn = r.corrected(r.step, p), false
			return p
		}
		if r.pending = append(r.pending, &waiting{p, noStep}); len(r.pending) > maxPending {
			return r.release(r.step)
		}
		return nil
	case stepByCount:
		if p.Step = r.placeOf(p); p.Step != noStep {
			return p
		}
	case stepOfLast:
		if p.Step = max(r.step, r.last); p.Step != noStep {
			return p
		}
	}
	if r.counted > 0 && aside(p) {
		p.Step = r.base + r.counted
		return p
	}
	p.Step = r.count()
	return p
}

// evaluated takes a line of an evaluation that counts its own steps: the last one is of
// the step that the training is at.
func (r *Reader) evaluated(m *match, p *Point) *Point {
	if m.step != m.total || r.step == noStep {
		return nil
	}
	p.Step = r.step
	return p
}

// aside reports whether a line is about the step of the previous line: it has only the numbers of
// an evaluation, or those at the end of a transformers training.
func aside(p *Point) bool {
	evaluation := true
	for _, v := range p.Values {
		if v.Tag == "train_runtime" {
			return true
		}
		evaluation = evaluation && (strings.HasPrefix(v.Tag, "eval_") || v.Tag == "epoch")
	}
	return evaluation
}

// placeOf returns the step of a line that has none, according to the lines before it, or noStep if
// they have none either.
func (r *Reader) placeOf(p *Point) int64 {
	switch {
	case r.isUnderHeading(p):
		return r.heading.place
	case ofEvaluation(p):
		return r.last
	}
	return noStep
}

// ofEvaluation reports whether a line has nothing of the training: in a program whose other
// lines say the step, it is about that.
func ofEvaluation(p *Point) bool {
	return !slices.ContainsFunc(p.Values, func(v Value) bool { return !strings.HasPrefix(v.Tag, "val/") && !strings.HasPrefix(v.Tag, "test/") })
}
