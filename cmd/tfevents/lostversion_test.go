package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// TestLostVersion copies a file whose version is damaged, and whose steps go back, as those
// of several curves do: TensorBoard's Python loader must not take that for a restart.
func TestLostVersion(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in", "1.tfevents")
	var b bytes.Buffer
	w := tfevents.NewEventsWriter(&b, nil)
	for i, step := range []int64{1, 2, 3, 2, 1, 5} {
		if err := w.WriteEvent(&tfpb.Event{WallTime: float64(100 + i), Step: step,
			What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar("loss", 1))}}); err != nil {
			t.Fatal(err)
		}
	}
	b.Bytes()[20] ^= 1
	for _, sub := range []string{"in", "repair", "edit", "merge"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, flags := range map[string][]string{"repair": nil, "edit": {"--shift-time", "1s"}, "merge": nil} {
		out := filepath.Join(dir, command, "1.tfevents")
		var said bytes.Buffer
		run(t.Context(), append([]string{"tfevents", command, file, out}, flags...), nil, &said, &said)
		d := tfevents.ReadRun(os.DirFS(filepath.Dir(out)), tfevents.Run{Files: []string{"1.tfevents"}}, &tfevents.RunOptions{Purge: tfevents.PurgePython})
		var steps []int64
		if s := d.Lookup("loss"); s != nil {
			for step := range s.Times() {
				steps = append(steps, step)
			}
		}
		if fmt.Sprint(steps) != "[1 2 3 2 1 5]" {
			t.Errorf("%s: the Python loader shows steps %v\n%s", command, steps, said.String())
		}
	}
}
