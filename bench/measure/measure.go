// Package measure is what the programs of the races have in common: the line
// that the driver reads, and the watch for it.
package measure

import (
	"encoding/json"
	"os"
	"time"
)

// Result is what a run of a contestant prints as the last line of its output:
// one JSON object.
type Result struct {
	Work       string             `json:"work"` // what was done; that of others must be the same
	Seconds    float64            `json:"seconds"`
	CPUSeconds float64            `json:"cpu_seconds"` // of all threads; 0 where the system does not tell
	Metrics    map[string]float64 `json:"metrics"`
}

// Print prints r for the driver.
func (r *Result) Print() error { return json.NewEncoder(os.Stdout).Encode(r) }

// A Watch measures wall clock and CPU time of this process.
type Watch struct {
	begun time.Time
	cpu   time.Duration
}

// Start starts a watch.
func Start() Watch { return Watch{begun: time.Now(), cpu: CPUTime()} }

// Result returns what was spent since the start on some work.
func (w Watch) Result(work string) *Result {
	elapsed := time.Since(w.begun)
	return &Result{
		Work: work, Seconds: elapsed.Seconds(), CPUSeconds: (CPUTime() - w.cpu).Seconds(), Metrics: make(map[string]float64),
	}
}
