package ckptdir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	tfpb "github.com/trainerd/trainerd/proto"
)

// copied saves checkpoints of steps 1 to n, one a minute, whose files were all
// copied just now, in the wrong order.
func copied(t *testing.T, n int) (dir string, saved []time.Time) {
	t.Helper()
	dir = t.TempDir()
	begin := time.Date(2026, 11, 20, 10, 0, 0, 500e6, time.UTC)
	for i := range n {
		saved = append(saved, begin.Add(time.Duration(i)*time.Minute))
		prefix := filepath.Join(dir, fmt.Sprintf("m-%d", i+1))
		saveCheckpoint(t, prefix)
		mtime := time.Now().Add(-time.Duration(i) * time.Second)
		if err := os.Chtimes(layout.IndexName(prefix), mtime, mtime); err != nil {
			t.Fatal(err)
		}
	}
	return dir, saved
}

func checkTimes(t *testing.T, dir string, want []time.Time) {
	t.Helper()
	list, err := List(dir)
	if err != nil || len(list) != len(want) {
		t.Fatal(list, err)
	}
	for i, c := range list {
		if d := c.Time.Sub(want[i]); d.Abs() > time.Microsecond {
			t.Errorf("%s: %v, want %v", c.Prefix, c.Time, want[i])
		}
	}
}

func TestTimesOfTheStateFile(t *testing.T) {
	dir, saved := copied(t, 7)
	s := &tfpb.CheckpointState{ModelCheckpointPath: "m-7"}
	for i, at := range saved {
		s.AllModelCheckpointPaths = append(s.AllModelCheckpointPaths, fmt.Sprintf("m-%d", i+1))
		s.AllModelCheckpointTimestamps = append(s.AllModelCheckpointTimestamps, float64(at.UnixNano())/1e9)
	}
	if err := os.WriteFile(filepath.Join(dir, StateName), FormatState(s), 0o666); err != nil {
		t.Fatal(err)
	}
	checkTimes(t, dir, saved)
}

// Manifests say it where the state file does not; a damaged one is not a reason
// not to list the checkpoint.
func TestTimesOfManifests(t *testing.T) {
	dir, saved := copied(t, 7)
	for i, at := range saved {
		prefix := filepath.Join(dir, fmt.Sprintf("m-%d", i+1))
		if err := manifest.Write(context.Background(), prefix, &manifest.Manifest{Step: int64(i + 1), WallTime: at}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, StateName), []byte(`model_checkpoint_path: "m-1"`+"\n"+
		`all_model_checkpoint_paths: "m-1"`+"\n"+`all_model_checkpoint_timestamps: nan`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	checkTimes(t, dir, saved)
	if err := os.WriteFile(manifest.Name(filepath.Join(dir, "m-7")), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(layout.IndexName(filepath.Join(dir, "m-7")))
	if err != nil {
		t.Fatal(err)
	}
	saved[6] = info.ModTime()
	checkTimes(t, dir, saved)
}

// Where both say it, the state file is right: it is written after the manifest.
func TestTimesOfBoth(t *testing.T) {
	dir, saved := copied(t, 1)
	prefix := filepath.Join(dir, "m-1")
	if err := manifest.Write(t.Context(), prefix, &manifest.Manifest{Step: 1, WallTime: saved[0].Add(time.Hour)}, nil); err != nil {
		t.Fatal(err)
	}
	state := &tfpb.CheckpointState{ModelCheckpointPath: "m-1", AllModelCheckpointPaths: []string{"m-1"}, AllModelCheckpointTimestamps: []float64{float64(saved[0].UnixNano()) / 1e9}}
	if err := os.WriteFile(filepath.Join(dir, StateName), FormatState(state), 0o666); err != nil {
		t.Fatal(err)
	}
	checkTimes(t, dir, saved)
}
