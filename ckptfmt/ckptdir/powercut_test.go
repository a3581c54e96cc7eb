package ckptdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
)

// saveStep saves a checkpoint as a Saver does: the bundle, its MetaGraph, the
// manifest, then the state file. The one of several shards, whose crashes are
// many as it is, has no manifest.
func saveStep(fsys ckptfmt.FS, dir string, step int64, shards int) error {
	prefix := filepath.Join(dir, fmt.Sprintf("model.ckpt-%d", step))
	if err := saveParts(fsys, prefix, step, shards); err != nil {
		return err
	}
	if err := metagraph.Write(layout.MetaName(prefix), &tfpb.MetaGraphDef{}, &ckptfmt.FileOptions{FS: fsys}); err != nil {
		return err
	}
	if shards == 1 {
		if err := manifest.Write(context.Background(), prefix, &manifest.Manifest{Step: step}, &ckptfmt.FileOptions{FS: fsys}); err != nil {
			return err
		}
	}
	return UpdateState(dir, &tfpb.CheckpointState{ModelCheckpointPath: prefix}, &StateOptions{FS: fsys, RelativePaths: true})
}

func saveParts(fsys ckptfmt.FS, prefix string, step int64, shards int) error {
	if shards == 1 {
		return saveOne(fsys, prefix, "w", step)
	}
	var parts []string
	for i := range shards {
		part := filepath.Join(prefix+"_temp", fmt.Sprintf("part-%05d-of-%05d", i, shards))
		if err := saveOne(fsys, part, fmt.Sprintf("w%d", i), step); err != nil {
			return err
		}
		parts = append(parts, part)
	}
	return ckptfmt.MergeBundles(context.Background(), parts, prefix, &ckptfmt.MergeOptions{FS: fsys, DeleteOldDirs: true})
}

// latestStep returns the step of the current checkpoint, which must be intact,
// or 0 when there is none.
func latestStep(t *testing.T, dir string) int64 {
	t.Helper()
	prefix, err := LatestCheckpoint(dir, nil)
	if IsNoState(err) {
		if _, serr := os.Stat(filepath.Join(dir, StateName)); serr == nil {
			t.Errorf("the state file leads nowhere: %v", err)
		}
		return 0
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	r, err := ckptfmt.OpenBundle(prefix, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer r.Close()
	for name, err := range r.Verify(t.Context()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.NumShards() > 1 {
		return StepOf(prefix)
	}
	for name, err := range manifest.Verify(t.Context(), prefix) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return StepOf(prefix)
}

// A power cut at any moment of a save leaves the checkpoint before it in
// force, or the new one; once the save has returned, the new one.
func TestPowerCut(t *testing.T) {
	for _, shards := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			root := t.TempDir()
			fsys := faultfs.New(0)
			var saved []int // operations done when save i had returned
			for step := int64(10); step <= 20; step += 10 {
				if err := saveStep(fsys, root, step, shards); err != nil {
					t.Fatal(err)
				}
				saved = append(saved, fsys.Ops())
			}
			dst := filepath.Join(t.TempDir(), "disk")
			for n := saved[0]; n <= fsys.Ops(); n++ {
				announced := int64(10)
				if n >= saved[1] {
					announced = 20
				}
				for state, err := range fsys.Crashes(n, root, dst) {
					if err != nil {
						t.Fatal(err)
					}
					if got := latestStep(t, dst); got < announced {
						t.Fatalf("%s: step %d is current, %d was announced", state, got, announced)
					}
					if t.Failed() {
						t.Fatal(state)
					}
				}
			}
		})
	}
}

// Any operation of a save may fail: the checkpoint before it stays the current one,
// the error says so, and nothing temporary is left of a single shard.
func TestSaveFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		if err := saveStep(nil, dir, 10, 1); err != nil {
			t.Fatal(err)
		}
		fsys := faultfs.New(n)
		err := saveStep(fsys, dir, 20, 1)
		if fsys.Ops() < n {
			if n < 20 {
				t.Errorf("only %d operations", n-1)
			}
			return
		}
		if !errors.Is(err, faultfs.ErrInjected) && !strings.HasPrefix(fsys.Failed(), "close after reading") {
			t.Errorf("operation %d: error %v", n, err)
		}
		if got := latestStep(t, dir); got < 10 {
			t.Errorf("operation %d: step %d is current", n, got)
		}
		for _, name := range fileNames(t, dir) {
			if layout.IsTemp(name) {
				t.Errorf("operation %d: %s is left", n, name)
			}
		}
		if again := fsys.Resynced(); again != "" {
			t.Errorf("operation %d: %s was synced again", n, again)
		}
		checkNoOrphans(t, n, dir)
	}
}

// checkNoOrphans checks that each data file has its index.
func checkNoOrphans(t *testing.T, n int, dir string) {
	t.Helper()
	for _, name := range fileNames(t, dir) {
		prefix, _, isData := strings.Cut(name, ".data-")
		if _, err := os.Stat(filepath.Join(dir, layout.IndexName(prefix))); isData && err != nil {
			t.Errorf("operation %d: %s has no index", n, name)
		}
	}
}
