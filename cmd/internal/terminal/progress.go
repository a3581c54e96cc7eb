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
	w       io.Writer
	label   string
	started time.Time

	mu    sync.Mutex
	total int64
	done  int64
	bar   *progressbar.ProgressBar
}

// NewProgress returns a bar for w, or nil if w is no terminal.
func NewProgress(w io.Writer, label string) *Progress {
	if !Is(w) {
		return nil
	}
	return &Progress{w: w, label: label, started: time.Now()}
}

// Expect adds n bytes to the work to do.
func (p *Progress) Expect(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += n
	if p.bar != nil {
		p.bar.ChangeMax64(p.total)
	}
}

// Add tells that n bytes more are done.
func (p *Progress) Add(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	if p.bar == nil {
		if time.Since(p.started) < patience {
			return
		}
		p.bar = p.newBar()
	}
	p.bar.Set64(min(p.done, p.total)) // its only error is a count beyond the total
}

func (p *Progress) newBar() *progressbar.ProgressBar {
	return progressbar.NewOptions64(max(p.total, 1),
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetDescription(p.label),
		progressbar.OptionShowBytes(true),
		progressbar.OptionUseANSICodes(false),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetWidth(20),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(true),
	)
}

// Clear removes the bar from the screen, before other words go there. The next
// Add brings it back.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Clear()
	}
}
