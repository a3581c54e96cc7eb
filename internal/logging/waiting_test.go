package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait waits for a disk that answers at once, late, and after minutes.
func TestAwait(t *testing.T) {
	for took, want := range map[time.Duration][]string{
		9 * time.Second:  nil,
		25 * time.Second: {"10s"},
		75 * time.Second: {"10s", "30s", "50s", "1m10s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var text bytes.Buffer
			log := slog.New(slog.NewTextHandler(&text, nil))
			failed := errors.New("failed")
			if err := Await(log.Warn, "the disk", func() error { time.Sleep(took); return failed }); err != failed {
				t.Errorf("Await = %v", err)
			}
			time.Sleep(time.Hour)
			var got []string
			for line := range strings.Lines(text.String()) {
				_, since, ok := strings.Cut(strings.TrimSpace(line), `level=WARN msg="still waiting" for="the disk" since=`)
				if !ok {
					t.Errorf("line %q", line)
				}
				got = append(got, since)
			}
			if !slices.Equal(got, want) {
				t.Errorf("a wait of %v is logged after %v, want %v", took, got, want)
			}
		})
	}
}
