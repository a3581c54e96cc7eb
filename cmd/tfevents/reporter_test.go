package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// Thousands of damaged places do not hide what a command prints; a file with few is
// named place by place, and so is all that verify finds.
func TestReporterNamesTheFirstPlacesOfAFile(t *testing.T) {
	report := func(limit int) string {
		var out strings.Builder
		r := &reporter{out: &out, limit: limit, places: make(map[string]int)}
		for i := range 1000 {
			r.damaged(&tfrecord.CorruptError{Name: "a", Offset: int64(24 * (i + 1)), Part: tfrecord.PartData, Err: errors.New("x")})
		}
		r.damaged(&tfrecord.CorruptError{Name: "b", Offset: 24, Part: tfrecord.PartData, Err: errors.New("x")})
		r.damaged(errors.New("no access"))
		if err := r.result(); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "1002 places") {
			t.Errorf("the result is %v", err)
		}
		return out.String()
	}
	short := report(damageShown)
	if got := strings.Count(short, "\n"); got != damageShown+3 {
		t.Errorf("%d lines, want %d:\n%s", got, damageShown+3, short)
	}
	if want := "tfevents: a: 995 more; `tfevents verify` names all\n"; !strings.HasSuffix(short, want) {
		t.Errorf("%q does not end with %q", short, want)
	}
	if got := strings.Count(report(0), "\n"); got != 1002 {
		t.Errorf("%d lines without a limit, want 1002", got)
	}
}
