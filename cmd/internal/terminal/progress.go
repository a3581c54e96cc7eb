package terminal

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// patience is how long work must take before a bar is shown.
const patience = 500 * time.Millisecond

// Progress is a bar of bytes. It is shown only on a terminal, and only once the
// work has taken a while. A nil *Progress does nothing. It is safe for
// concurrent use.
type Progress struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar
	total int64
	done  int64
}

// NewProgress returns a bar for w, or nil if w is not a terminal.
func NewProgress(w io.Writer, label string) *Progress {
	if !Is(w) {
		return nil
	}
	return &Progress{bar: progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(&late{w: w, from: time.Now().Add(patience)}),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowBytes(true),
		progressbar.OptionUseANSICodes(false),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetWidth(20),
		progressbar.OptionClearOnFinish(),
	)}
}

// late swallows what is written before its time.
type late struct {
	w    io.Writer
	from time.Time
}

func (l *late) Write(b []byte) (int, error) {
	if time.Now().Before(l.from) {
		return len(b), nil
	}
	return l.w.Write(b)
}

// Expect adds n bytes to the work to do.
func (p *Progress) Expect(n int64) {
	if p == nil || n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += n
	p.bar.ChangeMax64(p.total)
}

// Add counts n more bytes as done.
func (p *Progress) Add(n int) {
	if p == nil || n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	// Below the total: a bar that is full stays so, but files grow.
	p.bar.Set64(max(0, min(p.done, p.total-1)))
}

// Clear removes the bar from the screen. The next Add brings it back.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar.Clear()
}

// Before returns a writer to w that removes the bar before other words go to
// the terminal. If w is not a terminal, it is w itself.
func (p *Progress) Before(w io.Writer) io.Writer {
	if p == nil || !Is(w) {
		return w
	}
	return &clearing{p, w}
}

type clearing struct {
	p *Progress
	w io.Writer
}

func (c *clearing) Write(b []byte) (int, error) {
	c.p.Clear()
	return c.w.Write(b)
}
