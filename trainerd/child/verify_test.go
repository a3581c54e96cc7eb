//go:build unix

package child

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// zipFile returns an archive of one entry, as torch.save makes it.
func zipFile(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	e, err := w.CreateHeader(&zip.FileHeader{Name: "archive/data/0", Method: zip.Store})
	if err == nil {
		_, err = e.Write(bytes.Repeat([]byte("weights "), 64))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hdf5File returns the beginning of an HDF5 file that says to have size bytes.
func hdf5File(size uint64) string {
	b := make([]byte, 96)
	copy(b, "\x89HDF\r\n\x1a\n")
	b[13], b[14] = 8, 8
	binary.LittleEndian.PutUint64(b[40:], size)
	return string(b)
}

func npyFile(data string) string {
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n"
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header + data
}

// flip returns text with a bit of its byte at i changed.
func flip(text string, i int) string {
	b := []byte(text)
	b[i] ^= 1
	return string(b)
}

// TestSoundFolders holds folders as programs write them, and what a crash, a
// power cut or a full disk makes of them.
func TestSoundFolders(t *testing.T) {
	st, pt := tensorsFile(), zipFile(t)
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
		{"a .pt with a changed bit", files{"optimizer.pt": flip(pt, 100)}, false},
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
		{".h5", files{"m.weights.h5": hdf5File(96)}, true},
		{"a cut .h5", files{"m.weights.h5": hdf5File(97)}, false},
		{"no .h5", files{"m.h5": strings.Repeat("x", 100)}, false},
		{".npy", files{"w.npy": npyFile("12345678")}, true},
		{"a cut .npy", files{"w.npy": npyFile("1234567")}, false},
		{"a cut .npz", files{"w.npz": pt[:20]}, false},
		{"a pickle", files{"w.pkl": "\x80\x04abc."}, true},
		{"a cut pickle", files{"w.pkl": "\x80\x04abc"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				writeFile(t, filepath.Join(dir, "checkpoint-20", name), text)
			}
			added, bad := openShelf(t, dir, "checkpoint-*").refresh(true)
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
	writeFile(t, filepath.Join(dir, "checkpoint-10", "a.safetensors"), tensorsFile())
	for range 2 {
		s := openShelf(t, dir, "checkpoint-*", retention.Last(1))
		s.readRecords()
		s.refresh(true)
		if deleted, err := s.rotate(); deleted != nil || err != nil {
			t.Fatalf("deleted %v, %v", deleted, err)
		}
		r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
		r.quarantineDamaged(t.Context())
		if c, ok := s.newest(noCeiling); !ok || c.Step != 10 {
			t.Fatalf("the newest is %v", c)
		}
		if _, err := os.Stat(filepath.Join(dir, "checkpoint-20")); !os.IsNotExist(err) {
			t.Fatalf("the damaged one is still there: %v", err)
		}
	}
}

// TestDamagedFolderDeletesNothing has a retention of one, a good folder, and a
// newer one that was cut short.
func TestDamagedFolderDeletesNothing(t *testing.T) {
	dir, st := t.TempDir(), tensorsFile()
	writeFile(t, filepath.Join(dir, "checkpoint-10/model.safetensors"), st)
	writeFile(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st[:len(st)/2])
	s := openShelf(t, dir, "checkpoint-*", retention.Last(1))
	s.refresh(true)
	if deleted, err := s.rotate(); deleted != nil || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	if c, ok := s.newest(noCeiling); !ok || c.Step != 10 {
		t.Errorf("the newest is %v", c)
	}
	writeFile(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st)
	s.refresh(true)
	if deleted, err := s.rotate(); !slices.Equal(steps(deleted), []int64{10}) || err != nil {
		t.Errorf("once it is whole: deleted %v, %v", deleted, err)
	}
}

// TestMissingMark has a folder without the file that the one before got last.
func TestMissingMark(t *testing.T) {
	dir, st := t.TempDir(), tensorsFile()
	writeFile(t, filepath.Join(dir, "checkpoint-10/model.safetensors"), st)
	writeFile(t, filepath.Join(dir, "checkpoint-10/trainer_state.json"), "{}")
	s := openShelf(t, dir, "checkpoint-*")
	s.refresh(true)
	writeFile(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st)
	if added, bad := s.refresh(true); added != nil || len(bad) != 1 {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestUnreadable has a file that may not be read: it is neither damaged nor does
// it count, and comes back once it may be.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir, st := t.TempDir(), tensorsFile()
	writeFile(t, filepath.Join(dir, "checkpoint-10/model.safetensors"), st)
	writeFile(t, filepath.Join(dir, "checkpoint-20/model.safetensors"), st)
	name := filepath.Join(dir, "checkpoint-20/model.safetensors")
	if err := os.Chmod(name, 0); err != nil {
		t.Fatal(err)
	}
	s := openShelf(t, dir, "checkpoint-*", retention.Last(1))
	added, bad := s.refresh(true)
	if !slices.Equal(steps(added), []int64{10}) || len(bad) != 1 || bad[0].damaged() || s.newestDamaged() != nil {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	if deleted, _ := s.rotate(); deleted != nil {
		t.Errorf("deleted %v", deleted)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if added, _ := s.refresh(true); !slices.Equal(steps(added), []int64{20}) {
		t.Errorf("once it may be read: %v", added)
	}
}

// TestMoveAside moves what is damaged and newer than all else, and that alone.
func TestMoveAside(t *testing.T) {
	dir, st := t.TempDir(), tensorsFile()
	for step, text := range map[int]string{5: "", 10: st, 20: st[:30], 30: ""} {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("out/checkpoint-%d/model.safetensors", step)), text)
	}
	s := openShelf(t, dir, "*/checkpoint-*")
	r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
	s.refresh(true)
	r.quarantineDamaged(t.Context())
	left, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	if want := []string{filepath.Join(dir, "out/checkpoint-10"), filepath.Join(dir, "out/checkpoint-5")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v", left, err)
	}
	moved, err := filepath.Glob(filepath.Join(dir, "damaged", "checkpoint-*", "checkpoint-*", "model.safetensors"))
	if err != nil || len(moved) != 2 {
		t.Errorf("moved %v, %v", moved, err)
	}
	if added, bad := s.refresh(true); added != nil || bad != nil {
		t.Errorf("what was moved is found again: %v, %v", added, bad)
	}
}
