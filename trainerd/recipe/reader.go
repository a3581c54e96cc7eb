package recipe

import (
	"slices"
	"strconv"
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
	// noStep says that no line has said where the training is.
	noStep = -1
)

// Reader understands the lines of one start of a program, using a recipe. The
// meaning of a line may depend on earlier ones: progress bars start over with
// each epoch, and some programs print numbers in one line and the step in
// another.
type Reader struct {
	mu    sync.Mutex
	lines []Line

	base    int64      // the step that the start resumes from
	step    int64      // of the last line with one, noStep for none
	epoch   int64      // of the last line with one that has not been used
	ended   int64      // length of the epoch whose last line is held, 0 for none
	named   bool       // a line has begun an epoch
	bare    int64      // length of the epochs that no line has begun, 0 for none
	current span       // the epoch of the last line with both
	inSteps bool       // numbers came with steps, not epochs
	counted int64      // lines without a step
	heading heading    // above them
	rebased bool       // steps were counted from where a bar began again
	pending []*waiting // for their steps
	held    *Point     // what a bar says of its current step, nil for nothing
	// A bar is cleared before a line and drawn again after it, with the step of that
	// line. The two come by different pipes, so either may be read first.
	cleared, redrawn, clears bool
	main                     int64           // length of the bar of the training, 0 before it
	bars                     map[string]*bar // by the line's form and the bar's length
	table                    *table          // nil if tables are not read
	rows                     *Line           // the heading that lines are below, nil for none
	object                   object          // that has begun and not ended
	note                     note
	last                     int64           // the step of the last line with numbers, noStep for none
	marks                    map[string]mark // by the line's form
	learned                  *learned
}

// waiting is a line without a step, and the step of the first bar after it.
type waiting struct {
	*Point
	next int64
}

// span is an epoch, with its length and its end in steps.
type span struct{ epoch, length, end int64 }

// bar is a count of steps that begins again.
type bar struct{ epoch, last, offset, heading int64 }

// NewReader returns a reader for a start that resumes from a step, 0 for none.
func (r *Recipe) NewReader(step int64) *Reader {
	reader := &Reader{lines: r.Lines, base: min(max(step, 0), maxCount), step: noStep, epoch: noStep, last: noStep, heading: heading{place: noStep}, bars: map[string]*bar{}, marks: map[string]mark{}, learned: r.learned}
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

// aside reports whether a line says something of the step of the line before: it has the
// numbers of an evaluation alone, or those of the end of a training of transformers.
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

// placeOf returns the step of a line that has none, as the lines before it say, noStep where
// they do not.
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

// count makes up a step.
func (r *Reader) count() int64 {
	r.counted++
	return r.base + r.counted
}

// takeEpoch takes the line at the end of an epoch. It is drawn once more with the
// values of the validation, if there is one, so one without them is kept until then,
// or until the next epoch begins.
func (r *Reader) takeEpoch(m *match, p *Point) *Point {
	switch {
	case r.epoch != noStep:
		p.Step, r.epoch, r.ended = r.epoch, noStep, m.total
		if slices.ContainsFunc(p.Values, func(v Value) bool { return strings.HasPrefix(v.Tag, "val_") }) {
			return p
		}
		r.held = p
	case r.ended != 0 && r.held != nil && m.total == r.ended && len(p.Values) > len(r.held.Values):
		p.Step = r.held.Step
		r.held, r.ended = nil, 0
		return p
	case !r.named && (r.bare == 0 || m.total == r.bare):
		return r.takeBareEpoch(m, p)
	}
	return nil // of an evaluation, or a line that is drawn twice
}

// takeBareEpoch takes the last line of an epoch that no line has begun: Keras names the
// epoch only where fit is to do several. It returns what was kept of the one before.
func (r *Reader) takeBareEpoch(m *match, p *Point) (before *Point) {
	if r.held != nil && slices.Equal(r.held.Values, p.Values) {
		return nil // it is drawn twice
	}
	before, r.held = r.held, p
	p.Step, r.bare, r.ended = r.count(), m.total, m.total
	return before
}

// beginEpoch takes the line at the beginning of an epoch, and returns what was kept
// of the one before.
func (r *Reader) beginEpoch(epoch int64) (before *Point) {
	r.epoch, r.named = epoch, true
	if r.ended != 0 {
		before, r.held, r.ended = r.held, nil, 0
	}
	return before
}

// hold takes what a bar says, and returns what it has said of the step before: it
// is drawn with the numbers of that first, and then with its own.
func (r *Reader) hold(p *Point) (before *Point) {
	switch {
	case r.held == nil || p.Step > r.held.Step:
		before, r.held = r.held, p
	case p.Step == r.held.Step:
		r.held = p
	}
	return before
}

// place takes a line that says no more than where the training is.
func (r *Reader) place(m *match) *Point {
	if m.total == noStep {
		r.heading = heading{place: max(m.step, m.epoch), number: r.heading.number + 1, lines: r.heading.lines}
	}
	switch {
	case m.step == noStep:
		return r.beginEpoch(m.epoch)
	case m.epoch == noStep && m.total != noStep && r.main == 0:
		r.main = m.total
	case m.epoch == noStep && m.total != noStep && m.total != r.main:
		return nil // the bar of an evaluation
	}
	r.step = r.progress(m)
	drawnAgain := r.cleared
	r.redrawn, r.cleared = drawnAgain && len(r.pending) == 0, false
	switch {
	case len(r.pending) == 0:
		return nil
	case drawnAgain:
		return r.release(r.step)
	case r.clears:
		return nil // the bar that belongs to what waits has not been read yet
	}
	// A program that does not clear its bar; by the second one that is known.
	if next := r.pending[0].next; next != noStep {
		return r.release(next)
	}
	r.pending[0].next = r.step
	return nil
}

// release returns what has waited longest for a step.
func (r *Reader) release(step int64) *Point {
	if len(r.pending) == 0 {
		return nil
	}
	p := r.pending[0].Point
	r.pending = r.pending[1:]
	p.Step = r.corrected(max(step, 0), p)
	return p
}

// corrected returns the step of a point, which a bar says, as the epoch in it allows: not
// after the end of the bar.
func (r *Reader) corrected(step int64, p *Point) int64 {
	step = r.learned.correct(step, p)
	if r.main > 0 {
		step = min(step, r.main)
	}
	return step
}

// stepOf returns the step of a line with numbers. An epoch alone counts as one
// where no line has had steps.
func (r *Reader) stepOf(m *match) int64 {
	switch {
	case m.step != noStep:
	case r.inSteps && r.step != noStep:
		return r.endOf(m.epoch)
	case m.epoch == noStep: // it has a part of an epoch
		return r.count()
	default:
		return m.epoch
	}
	r.inSteps = true
	r.step = r.progress(m)
	return r.step
}

// endOf returns the step of a line about an epoch: its end, if the last line with a
// step was just before that. A bar may be drawn too seldom for its last step.
func (r *Reader) endOf(epoch int64) int64 {
	const near = 10 // parts of an epoch
	if c := r.current; c.epoch == epoch && r.step < c.end && c.end-r.step <= c.length/near+1 {
		r.step = c.end
	}
	return r.step
}

// progress returns the step of a line since the beginning of the training.
func (r *Reader) progress(m *match) int64 {
	switch {
	case m.line.Again:
		return m.step + r.againOf(m).offset
	case m.epoch != noStep && m.total != noStep && r.countsThrough(m):
		return m.step
	case m.epoch != noStep && m.total != noStep:
		epoch := max(m.epoch-r.learned.firstOf(m, r.base), 0)
		r.current = span{m.epoch, m.total, (epoch + 1) * m.total}
		return epoch*m.total + m.step
	case m.epoch == noStep && !m.line.counts() && r.heading.number == 0:
		return m.step
	}
	r.rebased = r.rebased || m.line.counts()
	return m.step + r.barOf(m).offset
}

// barOf returns the count that a line continues: where the number falls, or that of its
// epoch rises, an epoch has begun. If it has no total, that epoch is taken to be the first
// since the start.
func (r *Reader) barOf(m *match) *bar {
	key := m.line.Form + "|" + strconv.FormatInt(m.total, 10)
	b := r.bars[key]
	if b == nil {
		b = &bar{epoch: m.epoch, heading: r.heading.number}
		switch {
		case m.step > r.base:
		case m.total > 0:
			b.offset = r.base / m.total * m.total
		case r.beginsAgain(m):
			b.offset = r.base
		}
		r.bars[key] = b
	}
	isNext := m.epoch > b.epoch || m.epoch == noStep && r.heading.number > b.heading
	falls := m.step < b.last && (m.epoch != noStep || m.line.counts() || isNext)
	if falls || m.step == b.last && isNext {
		b.offset += max(b.last, m.total)
		r.learned.noteRestart(m.line.Form)
	}
	b.epoch, b.last, b.heading = m.epoch, m.step, r.heading.number
	return b
}

// beginsAgain reports whether the steps of a line are those of an epoch: its form says that,
// or lines have shown it, or it is below the heading of a later epoch and far behind the
// checkpoint.
func (r *Reader) beginsAgain(m *match) bool {
	return m.line.counts() || r.learned.hasRestarted(m.line.Form) || r.heading.place > 1 && m.step <= r.base/2
}
