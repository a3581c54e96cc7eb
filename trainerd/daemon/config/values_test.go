package config

import (
	"testing"
	"time"
)

func TestSecondsOrOff(t *testing.T) {
	tests := []struct {
		secs Seconds
		want time.Duration
	}{{0, -1}, {0.25, 250 * time.Millisecond}, {1e-12, 1}, {maxSeconds, 100 * 365 * 24 * time.Hour}}
	for _, tt := range tests {
		if got := tt.secs.OrOff(); got != tt.want {
			t.Errorf("%v s: %v, want %v", float64(tt.secs), got, tt.want)
		}
	}
}
