package main

import (
	"bytes"
	"syscall"
	"testing"
	"time"
)

// TestSecondSignal takes signals at certain times after the first.
func TestSecondSignal(t *testing.T) {
	type signal struct {
		sig syscall.Signal
		at  time.Duration
	}
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		signals []signal
		ends    int // which of them ends the process, -1 for none
	}{
		"one":                       {[]signal{{syscall.SIGTERM, 0}}, -1},
		"GNU timeout":               {[]signal{{syscall.SIGTERM, 0}, {syscall.SIGTERM, 1}}, -1},
		"hammered":                  {[]signal{{syscall.SIGINT, 0}, {syscall.SIGINT, 300 * ms}, {syscall.SIGINT, 600 * ms}, {syscall.SIGINT, 1200 * ms}}, 3},
		"two kinds":                 {[]signal{{syscall.SIGINT, 0}, {syscall.SIGTERM, 999 * ms}, {syscall.SIGTERM, 1000 * ms}}, 2},
		"a terminal that closes":    {[]signal{{syscall.SIGHUP, 0}, {syscall.SIGHUP, 5000 * ms}, {syscall.SIGTERM, 6000 * ms}, {syscall.SIGHUP, 9000 * ms}}, -1},
		"after one":                 {[]signal{{syscall.SIGHUP, 0}, {syscall.SIGTERM, 5000 * ms}, {syscall.SIGTERM, 6000 * ms}}, 2},
		"a terminal closes in time": {[]signal{{syscall.SIGTERM, 0}, {syscall.SIGHUP, 5000 * ms}}, -1},
	} {
		var log bytes.Buffer
		stops := 0
		w := &signalWatch{stderr: &log, message: "saving", stop: func(error) { stops++ }}
		begun := time.Now()
		ended := -1
		for i, s := range tt.signals {
			if w.take(s.sig, begun.Add(s.at)) {
				ended = i
				break
			}
		}
		if ended != tt.ends || stops != 1 {
			t.Errorf("%s: signal %d ends the process, want %d; stopped %d times\n%s", name, ended, tt.ends, stops, log.String())
		}
	}
}
