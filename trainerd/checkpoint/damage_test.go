package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// An index whose first and last blocks are intact is found to be damaged before anything
// is assigned.
func TestDamageInTheMiddleOfAnIndex(t *testing.T) {
	all := map[string]*ckptfmt.Tensor{}
	for i := range 2000 {
		all[fmt.Sprintf("layer_%04d/kernel", i)] = sessiontest.Vector(float32(i))
	}
	s := new(Saver)
	prefix := save(t, s, sessiontest.SessionOf(all), filepath.Join(t.TempDir(), "m"), 1)
	index, err := os.ReadFile(prefix + ".index")
	sessiontest.MustNoErr(t, err)
	index[len(index)/2] ^= 1
	sessiontest.MustNoErr(t, os.WriteFile(prefix+".index", index, 0o666))
	sess := sessiontest.SessionOf(all)
	if err := s.Restore(t.Context(), sess, prefix); !errors.Is(err, ckptfmt.ErrChecksum) || !strings.Contains(err.Error(), ".index") || sess.Restored != nil {
		t.Errorf("Restore: %v", err)
	}
	w := WarmStart{Checkpoint: prefix}
	if _, err := w.Apply(t.Context(), sess); !errors.Is(err, ckptfmt.ErrChecksum) || !strings.HasPrefix(err.Error(), "warm start: ") || sess.Restored != nil {
		t.Errorf("Apply: %v", err)
	}
}

// A warm start names the file that a checkpoint lacks, and says that it has no averages.
func TestWarmStartFromLess(t *testing.T) {
	prefix := save(t, new(Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"w": sessiontest.Vector[float32](1)}), filepath.Join(t.TempDir(), "m"), 1)
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"w": sessiontest.Vector[float32](0)})
	w := WarmStart{Checkpoint: prefix, Averages: true}
	if _, err := w.Apply(t.Context(), sess); err == nil || !strings.Contains(err.Error(), "ExponentialMovingAverage") {
		t.Errorf("without averages: %v", err)
	}
	list := filepath.Join(t.TempDir(), "model.safetensors.index.json")
	sessiontest.MustNoErr(t, os.WriteFile(list, []byte(`{"metadata": {}, "weight_map": {"w": "model-00001-of-00001.safetensors"}}`), 0o666))
	shards := WarmStart{Checkpoint: list}
	if _, err := shards.Apply(t.Context(), sess); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "model-00001-of-00001.safetensors") {
		t.Errorf("without a shard: %v", err)
	}
	data := prefix + ".data-00000-of-00001"
	w.Averages = false
	sessiontest.MustNoErr(t, os.Truncate(data, 2))
	if _, err := w.Apply(t.Context(), sess); err == nil || !strings.HasPrefix(err.Error(), "warm start: ") || !strings.Contains(err.Error(), filepath.Base(data)) || sess.Restored != nil {
		t.Errorf("with its data cut short: %v", err)
	}
	sessiontest.MustNoErr(t, os.Remove(data))
	if _, err := w.Apply(t.Context(), sess); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Base(data)) {
		t.Errorf("without its data: %v", err)
	}
}

// A shape that no memory holds fits nothing, however it is cut.
func TestShapeOfTooMany(t *testing.T) {
	s := &Saver{Reshape: true}
	for _, d := range []Difference{
		{ModelShape: []int64{1 << 40, 1 << 40}, CheckpointShape: []int64{2}},
		{ModelShape: []int64{2}, CheckpointShape: []int64{1 << 40, 1 << 40}},
		{ModelShape: []int64{1 << 40, 1 << 40}, CheckpointShape: []int64{1 << 40, 1 << 40, 1}},
	} {
		if s.shapeFits(d) {
			t.Errorf("%v fits %v", d.CheckpointShape, d.ModelShape)
		}
	}
	if !s.shapeFits(Difference{ModelShape: []int64{2, 3}, CheckpointShape: []int64{6}}) {
		t.Error("six elements do not fit six")
	}
}

// stuckFS is a full disk that takes no file.
type stuckFS struct{ atomicfile.FS }

func (stuckFS) FreeSpace(string) (int64, error) { return 0, nil }
func (stuckFS) Create(name string) (atomicfile.File, error) {
	return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.EDQUOT}
}

// A save that has to make room, and cannot record what it has deleted for it, says so.
// The newest checkpoint stays.
func TestRoomIsNotRecorded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m")
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
	s := &Saver{MaxToKeep: 2}
	save(t, s, sess, path, 1)
	save(t, s, sess, path, 2)
	s.FS = stuckFS{atomicfile.OrOS(nil)}
	if _, err := s.Save(t.Context(), sess, path, 3); !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("Save: %v; want why the state file cannot be written", err)
	}
	s.FS = nil
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, path+"-2"))
}
