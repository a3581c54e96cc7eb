package dataserver

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// TestFileIsTakenBack has a server that reads a file while that is begun, which cannot take what
// it is to have and is removed: its START hides the points before it no longer, whether or not
// another file follows, which the server has seen or not.
func TestFileIsTakenBack(t *testing.T) {
	start := &tfpb.Event{Step: 2, What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START}}}
	for _, looks := range []bool{false, true} { // between the two
		dir := t.TempDir()
		join := func(name string) string { return filepath.Join(dir, "a", name+".tfevents") }
		s := newStore(tfevents.DirFS(dir), -1, slog.New(slog.DiscardHandler))
		check := func(when string, want ...int64) {
			t.Helper()
			s.updateNamed(t.Context(), map[string]struct{}{"a": {}})
			s.scan(t.Context())
			for late := s.late(); late != nil; late = s.late() {
				s.updateNamed(t.Context(), late)
			}
			var got []int64
			s.view("a", func(x *tfevents.RunData) {
				for p := range x.Lookup("loss").Points() {
					got = append(got, p.Step)
				}
			})
			if !slices.Equal(got, want) {
				t.Errorf("%s, looks between %v: it has the steps %v, want %v", when, looks, got, want)
			}
		}
		appendEvents(t, join("1"), point("loss", 1, 0), point("loss", 2, 0), point("loss", 3, 0))
		check("at first", 1, 2, 3)
		appendEvents(t, join("2"), start)
		check("with the file", 1, 2)
		if err := os.Remove(join("2")); err != nil {
			t.Fatal(err)
		}
		if looks {
			check("without it", 1, 2, 3)
		}
		appendEvents(t, join("3"), start, point("loss", 4, 1))
		check("with another", 1, 2, 4)
		if err := os.Remove(join("3")); err != nil {
			t.Fatal(err)
		}
		check("without that", 1, 2, 3)
	}
}
