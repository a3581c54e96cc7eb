package daemon

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/trainerd/trainerd/trainerd/control"
)

// progress shows how a training proceeds. saved is called by the goroutine that
// saves, everything else by the one that trains.
type progress interface {
	// begin starts the display; steps is 0 for a training that ends with its
	// input.
	begin(step, steps int64, restored string)
	// wants reports whether the display of step will show values.
	wants(step int64) bool
	// value hands over what step will show.
	value(name, text string)
	// step shows a step. The loss is NaN if there is none.
	step(step int64, loss float64)
	evaluated(step int64, e *evaluation)
	saved(step int64)
	end()
}

// speedometer measures steps per second.
type speedometer struct {
	step int64
	at   time.Time
	rate float64 // 0 until it is known
}

// update takes the current step, and returns the rate since the last update,
// smoothed.
func (s *speedometer) update(step int64, now time.Time) float64 {
	elapsed := now.Sub(s.at).Seconds()
	if s.step < 0 { // it was not known where this begins
		s.step, s.at = step, now
		return 0
	}
	if elapsed <= 0 {
		return s.rate
	}
	rate := float64(max(step-s.step, 0)) / elapsed // a program may not continue where it was said to
	if s.rate > 0 {
		rate = 0.5*s.rate + 0.5*rate
	}
	s.step, s.at, s.rate = step, now, rate
	return rate
}

// eta returns the time that the remaining steps take, rounded for people.
func (s *speedometer) eta(steps int64) time.Duration {
	if s.rate <= 0 {
		return 0
	}
	left := time.Duration(float64(steps-s.step) / s.rate * float64(time.Second))
	return left.Round(time.Second)
}

// Pauses between two lines of a log. They double, so that a short job shows
// something and a long one does not fill the journal.
const (
	firstLine = time.Second
	maxPause  = time.Minute
)

// logProgress writes lines to a log.
type logProgress struct {
	log     *slog.Logger
	longest time.Duration // the longest pause, 0 for maxPause
	steps   int64
	speed   speedometer
	next    time.Time
	pause   time.Duration
	extra   []any // values of the next line

	last    int64 // step
	loss    float64
	pending bool // the last step has had no line
}

func (p *logProgress) begin(step, steps int64, restored string) {
	now := time.Now()
	p.steps = steps
	p.speed = speedometer{step: step, at: now}
	p.pause = firstLine
	p.next = now.Add(p.pause)
	if restored == "" {
		p.log.Info("training from the beginning", "steps", stepsText(steps))
		return
	}
	attrs := []any{"steps", stepsText(steps), "checkpoint", restored}
	if step >= 0 {
		attrs = append([]any{"step", step}, attrs...)
	}
	p.log.Info("restored; training continues", attrs...)
}

// stepsText is the number of steps for a person.
func stepsText(steps int64) any {
	if steps == 0 {
		return "until the end"
	}
	return steps
}

func (p *logProgress) wants(step int64) bool {
	return !time.Now().Before(p.next) || step == p.steps
}

func (p *logProgress) value(name, text string) { p.extra = append(p.extra, name, text) }

func (p *logProgress) evaluated(step int64, e *evaluation) {
	args := []any{"step", step}
	for i, name := range e.names {
		args = append(args, name, number(e.values[i]))
	}
	p.log.Info("evaluated", args...)
}

func (p *logProgress) step(step int64, loss float64) {
	now := time.Now()
	p.last, p.loss = step, loss
	if p.pending = now.Before(p.next) && step != p.steps; p.pending {
		return
	}
	p.line(now)
	p.pause = min(2*p.pause, cmp.Or(p.longest, maxPause))
	p.next = now.Add(p.pause)
}

// line logs the last step.
func (p *logProgress) line(now time.Time) {
	args := []any{"step", p.last}
	if !math.IsNaN(p.loss) {
		args = append(args, "loss", number(p.loss))
	}
	args = append(args, p.extra...)
	args = append(args, "steps_per_sec", number(p.speed.update(p.last, now)))
	if p.steps > 0 {
		args = append(args, "eta", p.speed.eta(p.steps))
	}
	p.log.Info("training", args...)
	p.extra = p.extra[:0]
}

func (p *logProgress) saved(int64) {} // the Supervisor logs it

// end logs the step of a training that has ended before its last step.
func (p *logProgress) end() {
	if p.pending {
		p.line(time.Now())
		p.pending = false // the next session may end without a step
	}
}

// rounded keeps four digits of a number, enough for a reader.
func rounded(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// number is rounded for a log, where it stays a number unless JSON has none for
// it.
func number(v float64) any {
	text := rounded(v)
	short, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(short) || math.IsInf(short, 0) {
		return text
	}
	return short
}

// barInterval is the time between two pictures of a bar.
const barInterval = 100 * time.Millisecond

// Terminal columns: of the bar without the text after it, and of the loss curve.
const (
	barWidth   = 32
	curveWidth = 12
)

// barProgress draws a bar on a terminal. It is also the writer for everything
// else that is said meanwhile, which appears above the bar.
type barProgress struct {
	out io.Writer
	// columns returns the width of the screen, 0 if it is not known.
	columns func() int

	mu      sync.Mutex
	bar     *progressbar.ProgressBar // nil unless training
	frame   bytes.Buffer             // what the bar draws, on its way to out
	steps   int64
	speed   speedometer
	next    time.Time
	last    int64
	loss    float64
	curve   control.Curve // of the loss
	savedAt int64         // -1 for none yet
	extra   []string      // values to show, each after two spaces
	tested  []string      // the newest evaluation
}

// screen is a writer that may be a terminal, such as an [os.File].
type screen interface{ Fd() uintptr }

func newBarProgress(out io.Writer) *barProgress {
	return &barProgress{out: out, savedAt: -1, columns: func() int {
		if f, ok := out.(screen); ok {
			if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
				return columns
			}
		}
		return 0
	}}
}

func (p *barProgress) begin(step, steps int64, restored string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case restored != "" && step >= 0:
		fmt.Fprintf(p.out, "resuming at step %d, restored from %s\n", step, filepath.Base(restored))
	case restored != "":
		fmt.Fprintf(p.out, "resuming, restored from %s\n", filepath.Base(restored))
	}
	p.steps, p.last = steps, max(step, 0)
	p.speed = speedometer{step: step, at: time.Now()}
	total := steps
	if total == 0 {
		total = -1 // not known
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(&p.frame),
		progressbar.OptionSetWidth(20),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionThrottle(0),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would draw from a goroutine of its own
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
	)
	p.advance(step)
	p.flush()
}

func (p *barProgress) wants(step int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.next) && step != p.steps {
		return false
	}
	p.extra = p.extra[:0]
	return true
}

func (p *barProgress) value(name, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extra = append(p.extra, "  "+name+" "+text)
}

func (p *barProgress) evaluated(_ int64, e *evaluation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tested = p.tested[:0]
	for i, name := range e.names {
		p.tested = append(p.tested, fmt.Sprintf("  eval %s %s", name, rounded(e.values[i])))
	}
}

func (p *barProgress) step(step int64, loss float64) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.loss = step, loss
	p.curve.Add(loss)
	if now.Before(p.next) && step != p.steps {
		return
	}
	p.next = now.Add(barInterval)
	p.speed.update(step, now)
	p.draw()
}

func (p *barProgress) saved(step int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.savedAt = step
}

// draw shows the bar as things are. The caller holds mu.
func (p *barProgress) draw() {
	p.bar.Describe(p.fit(p.fields()))
	p.frame.Reset() // the new text with the old bar
	p.advance(p.last)
	p.flush()
}

// fields returns what comes after the bar, the least of it last. The caller
// holds mu.
func (p *barProgress) fields() []string {
	step := fmt.Sprintf(" step %d", p.last)
	if p.steps > 0 {
		step += fmt.Sprintf("/%d", p.steps)
	}
	all := []string{step}
	if !math.IsNaN(p.loss) {
		all = append(all, "  loss "+rounded(p.loss))
	}
	if curve := control.Sparkline(p.curve.Points(), curveWidth); curve != "" {
		all = append(all, " "+curve)
	}
	all = append(all, "  "+rounded(p.speed.rate)+" steps/s")
	if p.steps > 0 {
		all = append(all, fmt.Sprintf("  ETA %v", p.speed.eta(p.steps)))
	}
	if p.savedAt >= 0 {
		all = append(all, fmt.Sprintf("  saved %d", p.savedAt))
	}
	all = append(all, p.extra...)
	return append(all, p.tested...)
}

// advance draws the bar at a step. The bar alone redraws only when the percentage changes, which in
// a long training may take hours. The caller holds mu.
func (p *barProgress) advance(step int64) {
	p.bar.Set64(step)
	if p.frame.Len() == 0 {
		p.bar.RenderBlank()
	}
}

// fit joins the fields for which there is room after the bar. A line that wraps
// would not be drawn over, and a number that is cut would be another one.
func (p *barProgress) fit(fields []string) string {
	room := p.columns() - barWidth
	if room <= -barWidth {
		return strings.Join(fields, "") // the width is not known
	}
	var text strings.Builder
	for _, f := range fields {
		if room -= utf8.RuneCountInString(f); room < 0 {
			break
		}
		text.WriteString(f)
	}
	return text.String()
}

// flush brings what the bar has drawn to the screen in one piece. A screen that is gone is no
// reason to stop the training. The caller holds mu.
func (p *barProgress) flush() {
	p.out.Write(p.frame.Bytes())
	p.frame.Reset()
}

func (p *barProgress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.bar.IsFinished() {
		p.draw()
	}
	fmt.Fprintln(p.out)
	p.bar = nil
}

// Write puts text above the bar.
func (p *barProgress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Clear()
		p.flush()
	}
	return p.out.Write(b)
}
