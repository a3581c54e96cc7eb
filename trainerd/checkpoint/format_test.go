package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// formatModel has tensors of different sizes, one of them larger than all the
// others together.
func formatModel() map[string]*ckptfmt.Tensor {
	vars := map[string]*ckptfmt.Tensor{"big": sessiontest.Vector[float32](make([]float32, 100)...)}
	for i := range 4 {
		vars[fmt.Sprint("small", i)] = sessiontest.Vector[float32](float32(i), 2)
	}
	return vars
}

// Every format is written, found, read back, rotated and deleted whole.
func TestSA12FormatsAndShards(t *testing.T) {
	for name, tt := range map[string]struct {
		saver *Saver
		want  []string // files of the last checkpoint
	}{
		"V2":              {&Saver{}, []string{"m-3.data-00000-of-00001", "m-3.index", "m-3.manifest.json"}},
		"V2, two shards":  {&Saver{Shards: 2}, []string{"m-3.data-00000-of-00002", "m-3.data-00001-of-00002", "m-3.index", "m-3.manifest.json"}},
		"V2, many shards": {&Saver{Shards: 99, NoManifest: true}, []string{"m-3.data-00000-of-00005", "m-3.data-00001-of-00005", "m-3.data-00002-of-00005", "m-3.data-00003-of-00005", "m-3.data-00004-of-00005", "m-3.index"}},
		"V1":              {&Saver{Format: FormatV1}, []string{"m-3"}},
		"V1 by the graph": {&Saver{Def: &tfpb.SaverDef{Version: tfpb.SaverDef_V1}}, []string{"m-3"}},
		"V1, two shards":  {&Saver{Format: FormatV1, Shards: 2}, []string{"m-3-00000-of-00002", "m-3-00001-of-00002"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.MemoryDir(t)
			vars := formatModel()
			tt.saver.MaxToKeep = 1
			for step := range int64(4) {
				vars["small0"] = sessiontest.Vector(float32(step), 0)
				save(t, tt.saver, sessiontest.SessionOf(vars), filepath.Join(dir, "m"), step)
			}
			if diff := cmp.Diff(sessiontest.Files(t, dir, "m-*"), tt.want); diff != "" {
				t.Errorf("files (-got +want):\n%s", diff)
			}
			prefix, err := ckptdir.LatestCheckpoint(dir, nil)
			sessiontest.MustNoErr(t, err)
			sess := sessiontest.SessionOf(formatModel())
			sessiontest.MustNoErr(t, (&Saver{}).Restore(t.Context(), sess, prefix))
			if got := sess.Get("small0"); !cmp.Equal(got.Data, sessiontest.Vector[float32](3, 0).Data) {
				t.Errorf("small0 = %v", got)
			}
			fallback, err := scanCheckpoints(dir, "m")
			sessiontest.MustNoErr(t, err)
			if len(fallback) != 1 || fallback[0].prefix != prefix || fallback[0].step != 3 {
				t.Errorf("found without the state file: %v; want %s", fallback, prefix)
			}
		})
	}
}

// Overwriting a sharded checkpoint leaves the old or the new one whatever
// operation fails, and no parts after once the next save succeeds.
func TestShardsEveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := sessiontest.MemoryDir(t)
		path := filepath.Join(dir, "m")
		vars := map[string]*ckptfmt.Tensor{"small0": sessiontest.Vector[float32](1, 2), "small1": sessiontest.Vector[float32](3)}
		save(t, &Saver{Shards: 2}, sessiontest.SessionOf(vars), path, session.NoStep)
		fsys := faultfs.New(n)
		vars["small0"] = sessiontest.Vector[float32](9, 9)
		_, err := (&Saver{Shards: 2, FS: fsys}).Save(t.Context(), sessiontest.SessionOf(vars), path, session.NoStep)
		if fsys.Ops() < n {
			if n < 20 {
				t.Errorf("only %d operations", n)
			}
			return
		}
		if err != nil && !errors.Is(err, faultfs.ErrInjected) {
			t.Fatalf("operation %d: %v", n, err)
		}
		if prefix := restoreFirst(t, sessiontest.SessionOf(vars), dir, "m"); prefix == "" {
			t.Errorf("operation %d: no checkpoint is left", n)
		}
	}
}

func TestShardsAreOfEqualSize(t *testing.T) {
	cut := new(Snapshot)
	for range 10 {
		cut.tensors = append(cut.tensors, snapshotTensor{size: 100})
	}
	var got []int
	for _, part := range (&Saver{Shards: 4}).split(cut) {
		got = append(got, len(part))
	}
	if !cmp.Equal(got, []int{3, 2, 3, 2}) {
		t.Errorf("tensors of the shards: %v", got)
	}
}

// Check knows the types that V1 has no place for as its writer does.
func TestV1Types(t *testing.T) {
	for number, name := range tfpb.DataType_name {
		dt := tfpb.DataType(number)
		if dt != tfpb.DataType_DT_STRING && dtype.Size(dt) <= 0 {
			continue // no type of a variable
		}
		w, err := ckptfmt.CreateV1(filepath.Join(t.TempDir(), "v1"), nil)
		sessiontest.MustNoErr(t, err)
		err = w.Add("x", &ckptfmt.Tensor{DType: dt, Shape: []int64{0}})
		w.Close()
		if got := fitsV1(dt); got != !errors.Is(err, ckptfmt.ErrType) {
			t.Errorf("fitsV1(%s) = %v, the writer says %v", name, got, err)
		}
	}
}

// A type that V1 has no place for fails the save, and nothing of that is left.
func TestV1TypeFails(t *testing.T) {
	dir := t.TempDir()
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"a": sessiontest.Vector[uint64](1), "b": sessiontest.Vector[float32](1)})
	for _, shards := range []int{1, 2} {
		if _, err := (&Saver{Format: FormatV1, Shards: shards}).Save(t.Context(), sess, filepath.Join(dir, "m"), 1); !errors.Is(err, ckptfmt.ErrType) {
			t.Errorf("in %d files: %v", shards, err)
		}
		if left := sessiontest.Files(t, dir, "*"); len(left) > 0 {
			t.Errorf("in %d files: left %v", shards, left)
		}
	}
}
