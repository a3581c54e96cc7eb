package tfevents

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

// TestFileWriterOverflowAcrossFiles fills the queue while a disk hangs and files are
// begun: each file begins with the version, and the steps that stay are in order, those
// of one file before those of the next.
func TestFileWriterOverflowAcrossFiles(t *testing.T) {
	for name, overflow := range map[string]Overflow{"drop oldest": DropOldest, "sample": Sample} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				var files []*fakeFile
				w := newTestWriter(t, t.TempDir(), &FileWriterOptions{Host: "h", BufferSize: -1, MaxQueue: 6, Overflow: overflow, MaxFileSize: 130})
				w.create = func(at time.Time) (atomicfile.File, int64, error) {
					f := &fakeFile{gate: gate}
					files = append(files, f)
					return f, at.Unix(), nil
				}
				const last = 50
				for step := range int64(last) {
					mustAdd(t, w, step+1)
				}
				close(gate)
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				var all []int64
				for i, f := range files {
					events := eventstest.Events(t, f.data)
					if v := events[0].GetFileVersion(); v != fileVersion || len(events) == 1 || len(events) > 1+4 {
						t.Errorf("file %d begins with version %q and has %d events", i, v, len(events))
					}
					all = append(all, steps(t, f.data)...)
				}
				if !slices.IsSorted(all) || len(all) != last-int(w.Dropped()) || all[len(all)-1] != last || w.Dropped() == 0 {
					t.Errorf("%d files hold steps %v, %d were dropped", len(files), all, w.Dropped())
				}
			})
		})
	}
}
