//go:build unix

package found

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestDamagedFolderDeletesNothing has a retention of one, a good folder, and a
// newer one that was cut short.
func TestDamagedFolderDeletesNothing(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	childtest.Write(t, filepath.Join(dir, "checkpoint-10/model.safetensors"), st)
	childtest.Write(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st[:len(st)/2])
	s := openStore(t, dir, "checkpoint-*", retention.Last(1))
	s.Refresh(true)
	if deleted, err := s.Rotate(); deleted != nil || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	if c, ok := s.Newest(); !ok || c.Step != 10 {
		t.Errorf("the newest is %v", c)
	}
	childtest.Write(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st)
	s.Refresh(true)
	if deleted, err := s.Rotate(); !slices.Equal(steps(deleted), []int64{10}) || err != nil {
		t.Errorf("once it is whole: deleted %v, %v", deleted, err)
	}
}

// TestMissingMark has a folder without the file that the one before got last.
func TestMissingMark(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	childtest.Write(t, filepath.Join(dir, "checkpoint-10/model.safetensors"), st)
	childtest.Write(t, filepath.Join(dir, "checkpoint-10/trainer_state.json"), "{}")
	s := openStore(t, dir, "checkpoint-*")
	s.Refresh(true)
	childtest.Write(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st)
	if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestUnreadable has a file that may not be read: it is neither damaged nor does
// it count, and comes back once it may be.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir, st := t.TempDir(), childtest.Tensors()
	childtest.Write(t, filepath.Join(dir, "checkpoint-10/model.safetensors"), st)
	childtest.Write(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st)
	name := filepath.Join(dir, "checkpoint-20/model.safetensors")
	if err := os.Chmod(name, 0); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir, "checkpoint-*", retention.Last(1))
	added, bad := s.Refresh(true)
	if !slices.Equal(steps(added), []int64{10}) || len(bad) != 1 || bad[0].Damaged() || s.NewestDamaged() != nil {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	if deleted, _ := s.Rotate(); deleted != nil {
		t.Errorf("deleted %v", deleted)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if added, _ := s.Refresh(true); !slices.Equal(steps(added), []int64{20}) {
		t.Errorf("once it may be read: %v", added)
	}
}

// TestSoundFolders holds folders as programs write them, and what a crash, a
// power cut or a full disk makes of them.
func TestSoundFolders(t *testing.T) {
	st, pt := childtest.Tensors(), childtest.Zip(t)
	const weightMap = `{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`
	const metadata = "\x80\x04__0_0.distcp __1_0.distcp."
	type files map[string]string
	for _, tc := range []struct {
		name   string
		files  files
		intact bool
	}{
		{"transformers", files{"model.safetensors": st, "optimizer.pt": pt, "trainer_state.json": `{"a": NaN}`, "merges.txt": ""}, true},
		{"a cut .safetensors", files{"model.safetensors": st[:len(st)-3], "trainer_state.json": "{}"}, false},
		{"a long .safetensors", files{"model.safetensors": st + "x"}, false},
		{"a cut .pt", files{"model.safetensors": st, "optimizer.pt": pt[:len(pt)/2]}, false},
		{"a .pt with a changed bit", files{"optimizer.pt": childtest.Flip(pt, 100)}, false},
		{"a .pt of zeros", files{"optimizer.pt": string(make([]byte, 900))}, false},
		{"an empty .pth", files{"model.safetensors": st, "rng_state.pth": ""}, false},
		{"a cut .json", files{"model.safetensors": st, "trainer_state.json": `{"log_history": [{"loss"`}, false},
		{"an empty .bin in a folder of it", files{"a/b.bin": "", "c.pt": pt}, false},
		{"an empty mark", files{"a.pt": pt, "_SUCCESS": ""}, true},
		{"a temporary name", files{"model.safetensors": st, "optimizer.pt.tmp": "x"}, false},
		{"shards", files{"model-00001-of-00002.safetensors": st, "model-00002-of-00002.safetensors": st, "model.safetensors.index.json": weightMap}, true},
		{"a missing shard", files{"model-00001-of-00002.safetensors": st, "model.safetensors.index.json": weightMap}, false},
		{"a missing shard, no index", files{"model-00001-of-00002.safetensors": st}, false},
		{"shards without an index", files{"model-00001-of-00001.safetensors": st}, false},
		{"DCP", files{".metadata": metadata, "__0_0.distcp": pt, "__1_0.distcp": pt + pt}, true},
		{"DCP without .metadata", files{"__0_0.distcp": pt, "__1_0.distcp": pt}, false},
		{"DCP in a folder without .metadata", files{"dist/__0_0.distcp": pt, "x.pt": pt}, false},
		{"DCP with a cut .metadata", files{".metadata": metadata[:len(metadata)-1], "__0_0.distcp": pt, "__1_0.distcp": pt}, false},
		{"DCP without a file", files{".metadata": metadata, "__0_0.distcp": pt}, false},
		{"DCP with a cut file", files{".metadata": metadata, "__0_0.distcp": pt, "__1_0.distcp": pt[:len(pt)-30]}, false},
		{"orbax", files{"_CHECKPOINT_METADATA": `{"commit_timestamp_nsecs": 17}`, "default/_METADATA": "{}", "default/manifest.ocdbt": "x", "default/ocdbt.process_0/d/1": "x"}, true},
		{"orbax without a commit", files{"_CHECKPOINT_METADATA": `{"commit_timestamp_nsecs": null}`, "default/a": "x"}, false},
		{"orbax before it is merged", files{"default/_METADATA": "{}", "default/ocdbt.process_0/d/1": "x"}, false},
		{"orbax, an item not renamed", files{"default.orbax-checkpoint-tmp-7/d/1": "x"}, false},
		{"DeepSpeed", files{"latest": "global_step9", "global_step9/mp_rank_00_model_states.pt": pt}, true},
		{"DeepSpeed without a rank", files{"latest": "global_step9", "global_step9/zero_pp_rank_0_mp_rank_00_optim_states.pt": pt, "global_step9/zero_pp_rank_2_mp_rank_00_optim_states.pt": pt}, false},
		{"DeepSpeed, latest not there", files{"latest": "global_step9", "global_step8/mp_rank_00_model_states.pt": pt}, false},
		{"a bundle that is none", files{"v.index": "x", "v.data-00000-of-00001": "x"}, false},
		{"a file that TensorFlow has not renamed", files{"a.safetensors": st, "v.data-00000-of-00001.tempstate1234": "x"}, false},
		{"a bundle without an index", files{"v.data-00000-of-00001": "x"}, false},
		{".h5", files{"m.weights.h5": childtest.HDF5(t)}, true},
		{"a cut .h5", files{"m.weights.h5": childtest.HDF5(t)[:5000]}, false},
		{"an .h5 that was not closed", files{"m.weights.h5": childtest.HDF5(t)[:96] + strings.Repeat("\x00", len(childtest.HDF5(t))-96)}, false},
		{"no .h5", files{"m.h5": strings.Repeat("x", 100)}, false},
		{".npy", files{"w.npy": childtest.NPY("12345678")}, true},
		{"a cut .npy", files{"w.npy": childtest.NPY("1234567")}, false},
		{"a cut .npz", files{"w.npz": pt[:20]}, false},
		{"a pickle", files{"w.pkl": "\x80\x04abc."}, true},
		{"a cut pickle", files{"w.pkl": "\x80\x04abc"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				childtest.Write(t, filepath.Join(dir, "checkpoint-20", name), text)
			}
			added, bad := openStore(t, dir, "checkpoint-*").Refresh(true)
			if got := len(added) == 1 && bad == nil; got != tc.intact {
				t.Errorf("intact: %v, %v; want %v", added, bad, tc.intact)
			}
			if !tc.intact {
				keepsTheGoodOne(t, dir)
			}
		})
	}
}

// keepsTheGoodOne has a checkpoint of step 10 next to a damaged one of step 20,
// and a retention of one: in a run that sees it come, and in one that finds it.
func keepsTheGoodOne(t *testing.T, dir string) {
	t.Helper()
	childtest.Write(t, filepath.Join(dir, "checkpoint-10", "a.safetensors"), childtest.Tensors())
	for range 2 {
		s := openStore(t, dir, "checkpoint-*", retention.Last(1))
		s.ReadRecords()
		s.Refresh(true)
		if deleted, err := s.Rotate(); deleted != nil || err != nil {
			t.Fatalf("deleted %v, %v", deleted, err)
		}
		for _, c := range s.NewestDamaged() {
			_, err := s.Quarantine(t.Context(), c, time.Now())
			childtest.Must(t, err)
		}
		if c, ok := s.Newest(); !ok || c.Step != 10 {
			t.Fatalf("the newest is %v", c)
		}
		if _, err := os.Stat(filepath.Join(dir, "checkpoint-20")); !os.IsNotExist(err) {
			t.Fatalf("the damaged one is still there: %v", err)
		}
	}
}

// TestMoveAside moves what is damaged and newer than all else, and that alone.
func TestMoveAside(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	for _, c := range []struct {
		step int
		text string
	}{{5, ""}, {10, st}, {20, st[:30]}, {30, ""}} {
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("out/checkpoint-%d/model.safetensors", c.step)), c.text)
	}
	s := openStore(t, dir, "*/checkpoint-*")
	s.Refresh(true)
	clearDamaged(t.Context(), s)
	left, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	if want := []string{filepath.Join(dir, "out/checkpoint-10"), filepath.Join(dir, "out/checkpoint-5")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v", left, err)
	}
	moved, err := filepath.Glob(filepath.Join(dir, "damaged", "checkpoint-*", "checkpoint-*", "model.safetensors"))
	if err != nil || len(moved) != 2 {
		t.Errorf("moved %v, %v", moved, err)
	}
	if added, bad := s.Refresh(true); added != nil || bad != nil {
		t.Errorf("what was moved is found again: %v, %v", added, bad)
	}
}
