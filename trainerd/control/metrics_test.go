package control

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd"
)

// The size of a checkpoint is that of its files, also in a folder whose name looks
// like a pattern.
func TestCheckpointSize(t *testing.T) {
	for _, folder := range []string{"run", "lr=[0.1]"} {
		dir := filepath.Join(t.TempDir(), folder)
		if err := os.MkdirAll(filepath.Join(dir, "step-3"), 0o777); err != nil {
			t.Fatal(err)
		}
		for name, size := range map[string]int{"m-3.index": 1, "m-3.meta": 2, "m-3.manifest.json": 128, "m-3.data-00000-of-00002": 4, "m-3.data-00001-of-00002": 8, "m-30.index": 16, "step-3/a": 32, "step-3/b": 64} {
			if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for prefix, want := range map[string]int64{"m-3": 143, "step-3": 96, "m-30": 16, "none": 0} {
			if got := checkpointSize(filepath.Join(dir, prefix)); got != want {
				t.Errorf("%s in %s: %d bytes, want %d", prefix, folder, got, want)
			}
		}
	}
}

// The age of a checkpoint is right whatever happens to the clock: the time of a program's file
// may be later than now, for the clock was set back or is that of another host.
func TestCheckpointAge(t *testing.T) {
	for _, c := range []struct{ written, want time.Duration }{{0, 10 * time.Second}, {-time.Minute, 70 * time.Second}, {24 * time.Hour, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			m := NewMonitor("digits", t.TempDir(), 7)
			time.Sleep(time.Second)
			if got := m.checkpointAge(); got != time.Second {
				t.Errorf("without a checkpoint: %v", got)
			}
			m.Saved(trainerd.SavedCheckpoint{Time: time.Now().Add(c.written).Round(0)})
			time.Sleep(10 * time.Second)
			if got := m.checkpointAge(); got != c.want {
				t.Errorf("written %v from now: %v, want %v", c.written, got, c.want)
			}
		})
	}
}
