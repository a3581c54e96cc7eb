package daemon

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress tells how a training goes. begin, step and end are called by the
// goroutine that trains, saved by the one that saves.
type progress interface {
	begin(step, steps int64, restored string)
	step(step int64, loss float64)
	saved(step int64)
	end()
}

// speedometer measures steps per second.
type speedometer struct {
	step int64
	at   time.Time
	rate float64 // 0 until it is known
}

// update takes the present step, and returns the rate since the last update,
// smoothed.
func (s *speedometer) update(step int64, now time.Time) float64 {
	elapsed := now.Sub(s.at).Seconds()
	if elapsed <= 0 {
		return s.rate
	}
	rate := float64(step-s.step) / elapsed
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
	log   *slog.Logger
	steps int64
	speed speedometer
	next  time.Time
	pause time.Duration
}

func (p *logProgress) begin(step, steps int64, restored string) {
	now := time.Now()
	p.steps = steps
	p.speed = speedometer{step: step, at: now}
	p.pause = firstLine
	p.next = now.Add(p.pause)
	if restored == "" {
		p.log.Info("training from the beginning", "steps", steps)
		return
	}
	p.log.Info("restored; training goes on", "step", step, "steps", steps, "checkpoint", restored)
}

func (p *logProgress) step(step int64, loss float64) {
	now := time.Now()
	if now.Before(p.next) && step < p.steps {
		return
	}
	rate := p.speed.update(step, now)
	p.log.Info("training", "step", step, "loss", rounded(loss), "steps_per_sec", rounded(rate), "eta", p.speed.eta(p.steps))
	p.pause = min(2*p.pause, maxPause)
	p.next = now.Add(p.pause)
}

func (p *logProgress) saved(int64) {} // the Supervisor logs it

func (p *logProgress) end() {}

// rounded keeps four digits of a number, as many as a reader wants.
func rounded(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// barInterval is the time between two pictures of a bar.
const barInterval = 100 * time.Millisecond

// barProgress draws a bar on a terminal. It is also the writer for everything
// else that is said meanwhile, which appears above the bar.
type barProgress struct {
	out io.Writer

	mu      sync.Mutex
	bar     *progressbar.ProgressBar // nil unless training
	frame   bytes.Buffer             // what the bar draws, on its way to out
	steps   int64
	speed   speedometer
	next    time.Time
	last    int64
	loss    float64
	savedAt int64 // -1 for none yet
}

func newBarProgress(out io.Writer) *barProgress { return &barProgress{out: out, savedAt: -1} }

func (p *barProgress) begin(step, steps int64, restored string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if restored != "" {
		fmt.Fprintf(p.out, "going on at step %d, restored from %s\n", step, filepath.Base(restored))
	}
	p.steps, p.last = steps, step
	p.speed = speedometer{step: step, at: time.Now()}
	p.bar = progressbar.NewOptions64(steps,
		progressbar.OptionSetWriter(&p.frame),
		progressbar.OptionSetWidth(20),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionThrottle(0),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
	)
	p.bar.Set64(step)
	p.flush()
}

func (p *barProgress) step(step int64, loss float64) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.loss = step, loss
	if now.Before(p.next) && step < p.steps {
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
	text := fmt.Sprintf(" step %d/%d  loss %s  %s steps/s  ETA %v", p.last, p.steps, rounded(p.loss), rounded(p.speed.rate), p.speed.eta(p.steps))
	if p.savedAt >= 0 {
		text += fmt.Sprintf("  saved %d", p.savedAt)
	}
	p.bar.Describe(text)
	p.frame.Reset() // the new text with the old bar
	p.bar.Set64(p.last)
	p.flush()
}

// flush brings what the bar has drawn to the screen in one piece. A screen that
// is gone is no reason to stop training. The caller holds mu.
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
