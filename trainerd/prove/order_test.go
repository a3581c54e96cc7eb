package prove

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/tfevents"
)

// TestSavesFirst has trainings with steps of a second that report a step and save it, or
// save and then do the step.
func TestSavesFirst(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		saved time.Duration // after the report of the step before
		every int64         // steps between two reports
		want  bool
	}{
		"as nanoGPT does":              {10 * time.Millisecond, 1, true},
		"nanoGPT, every tenth":         {10 * time.Millisecond, 10, true},
		"after the report":             {1010 * time.Millisecond, 1, false},
		"at once with a late report":   {980 * time.Millisecond, 1, false},
		"after the report, each tenth": {1010 * time.Millisecond, 10, false},
		"a long save":                  {30 * time.Second, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outcome{logdir: t.TempDir()}
			w, err := tfevents.NewFileWriter(o.logdir, nil)
			if err != nil {
				t.Fatal(err)
			}
			at := func(step int64) time.Time { return begun.Add(time.Duration(step) * time.Second) }
			for step := int64(0); step <= 100; step++ {
				if step%tc.every == 0 {
					err = w.AddScalarAt(t.Context(), at(step), "loss", 1, step)
				}
				if step%20 != 0 || step == 0 || err != nil {
					continue
				}
				file := filepath.Join(o.logdir, fmt.Sprintf("ckpt-%d.json", step))
				if err = os.WriteFile(file, []byte("{}"), 0o666); err == nil {
					saved := at(step - 1).Add(tc.saved)
					err = os.Chtimes(file, saved, saved)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := o.savesFirst("ckpt-*.json"); got != tc.want {
				t.Errorf("saves first: %v, want %v", got, tc.want)
			}
		})
	}
	if o := (&outcome{logdir: t.TempDir()}); o.savesFirst("") {
		t.Error("a logdir without anything saves first")
	}
}
