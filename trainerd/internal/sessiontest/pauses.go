package sessiontest

import (
	"sync"
	"time"
)

// Pauses measures the pauses between the lines of a log.
type Pauses struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

// Write takes a line.
func (p *Pauses) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
	return len(line), nil
}

// Longest returns the longest pause up to now.
func (p *Pauses) Longest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.longest, time.Since(p.last))
}
