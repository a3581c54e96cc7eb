package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"testing"
)

// TestInterruptedOutput interrupts a command that has read everything and prints it.
func TestInterruptedOutput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &untilInterrupted{ctx, io.Discard}
	if n, err := w.Write([]byte("row")); n != 3 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	cancel()
	views := []*view{{series: []seriesView{seriesOf("loss", 5000)}}}
	views[0].run.Name = "."
	s := &selection{views: views, plugin: "scalars"}
	for _, format := range []string{"csv", "wide", "json", "parquet"} {
		s.tags = regexp.MustCompile("")
		if err := s.export(w, format); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want that it is interrupted", format, err)
		}
	}
}
