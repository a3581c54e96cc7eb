package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// save saves the variables of a session, and returns the prefix.
func save(t *testing.T, s *Saver, sess session.Session, path string, step int64) string {
	t.Helper()
	prefix, err := s.Save(t.Context(), sess, path, step)
	sessiontest.MustNoErr(t, err)
	return prefix
}

func TestSaveRestore(t *testing.T) {
	values := map[string]*ckptfmt.Tensor{
		"f": sessiontest.Vector[float32](1, 2), "d": sessiontest.Vector(0.5), "i": sessiontest.Vector[int64](1<<40, -1), "s": sessiontest.Vector("a", "", "\x00z"), "b": sessiontest.Vector(true, false),
		"scalar": ckptfmt.Scalar(int32(3)), "empty": sessiontest.Vector[float32](),
	}
	prefix := save(t, new(Saver), sessiontest.SessionOf(values), filepath.Join(t.TempDir(), "m"), 3)
	blank := make(map[string]*ckptfmt.Tensor)
	for name, v := range values {
		c := &ckptfmt.Tensor{DType: v.DType, Shape: v.Shape, Data: make([]byte, len(v.Data))}
		if v.Strings != nil {
			c.Strings = make([][]byte, len(v.Strings))
		}
		blank[name] = c
	}
	m := sessiontest.NewModel(blank) // SA-31: not initialised
	sessiontest.MustNoErr(t, new(Saver).Restore(t.Context(), &sessiontest.Session{Model: m}, prefix))
	for name, want := range values {
		got := m.Vars[name]
		if !got.Ready || !slices.Equal(got.Value.Data, want.Data) || !slices.EqualFunc(got.Value.Strings, want.Strings, slices.Equal) {
			t.Errorf("%s = %+v; want %+v", name, got.Value, want)
		}
	}
}

// Keys other than the variables' names, on both sides.
func TestSA2NameMap(t *testing.T) {
	dir := t.TempDir()
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v0": sessiontest.Vector[float32](1), "v1": sessiontest.Vector[float32](2)})
	prefix := save(t, &Saver{Variables: map[string]string{"save_prefix/v0": "v0", "save_prefix/v1": "v1:0"}}, sess, filepath.Join(dir, "m"), session.NoStep)
	if diff := cmp.Diff(keys(t, prefix), []string{"save_prefix/v0", "save_prefix/v1"}); diff != "" {
		t.Errorf("keys (-got +want):\n%s", diff)
	}
	err := new(Saver).Restore(t.Context(), sess, prefix)
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || len(mismatch.Differences) != 2 || !mismatch.Differences[0].Missing() {
		t.Errorf("restore under the variables' names: %v; want both missing", err)
	}
	other := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"restore_prefix/v0": sessiontest.Vector[float32](0), "v9": sessiontest.Vector[float32](0)})
	s := &Saver{Variables: map[string]string{"save_prefix/v0": "restore_prefix/v0"}}
	sessiontest.MustNoErr(t, s.Restore(t.Context(), other, prefix))
	if diff := cmp.Diff(other.Vars["restore_prefix/v0"].Value.Data, sessiontest.Vector[float32](1).Data); diff != "" {
		t.Errorf("restored (-got +want):\n%s", diff)
	}
}

func keys(t *testing.T, prefix string) []string {
	t.Helper()
	r, err := ckptfmt.OpenBundle(prefix, nil)
	sessiontest.MustNoErr(t, err)
	defer r.Close()
	var names []string
	for info, err := range r.Tensors() {
		sessiontest.MustNoErr(t, err)
		names = append(names, info.Name)
	}
	return names
}

func TestSaverErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	sessiontest.MustNoErr(t, os.WriteFile(file, nil, 0o666))
	taken := t.TempDir()
	sessiontest.MustNoErr(t, os.Mkdir(filepath.Join(taken, DefaultLatestFilename), 0o777))
	vars := map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)}
	notReady := &sessiontest.Session{Model: sessiontest.NewModel(vars)}
	tests := []struct {
		name  string
		saver *Saver
		sess  session.Session
		path  string
		want  string
	}{
		{"SA3 one variable under two keys", &Saver{Variables: map[string]string{"a": "v", "b": "v:0"}}, nil, "", "two keys, a and b"},
		{"SA3 no such variable", &Saver{Variables: VariableList("w")}, nil, "", "no variable w"},
		{"SA3 nothing to save", nil, sessiontest.SessionOf(nil), "", "no variables to save"},
		{"reserved key", &Saver{Variables: map[string]string{session.StatePrefix + "x": "v"}}, nil, "", "reserved"},
		{"SA14 latest filename with a directory", &Saver{LatestFilename: "a/b"}, nil, "", "must not contain path components"},
		{"SA14 collision with the state file", nil, nil, filepath.Join(dir, "checkpoint"), "collides"},
		{"SA14 state file is a folder", nil, nil, filepath.Join(taken, "m"), "each save writes a file of this name"},
		{"SA16 two directories missing", nil, nil, filepath.Join(dir, "a", "b", "m"), "no such file or directory"},
		{"SA16 parent is a file", nil, nil, filepath.Join(file, "m"), "not a directory"},
		{"path is a directory", nil, nil, dir + "/", "names no file"},
		{"SA17 not initialised", nil, notReady, "", "uninitialized value v"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, sess, path := tt.saver, tt.sess, tt.path
			if s == nil {
				s = new(Saver)
			}
			if sess == nil {
				sess = sessiontest.SessionOf(vars)
			}
			if path == "" {
				path = filepath.Join(dir, "m")
			}
			_, err := s.Save(t.Context(), sess, path, session.NoStep)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Save = %v; want an error with %q", err, tt.want)
			}
			if left := sessiontest.Files(t, dir, "*"); !slices.Equal(left, []string{"file"}) {
				t.Errorf("files left: %v", left)
			}
		})
	}
}

func TestSA16OneMissingDirectoryIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "m")
	save(t, new(Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)}), path, 1)
}

func TestSA4AllowEmpty(t *testing.T) {
	dir := t.TempDir()
	s := &Saver{AllowEmpty: true, MetaGraph: &tfpb.MetaGraphDef{}}
	if prefix := save(t, s, sessiontest.SessionOf(nil), filepath.Join(dir, "m"), 1); prefix != "" {
		t.Errorf("Save = %q; want no prefix", prefix)
	}
	if diff := cmp.Diff(sessiontest.Files(t, dir, "*"), []string{"m-1.meta"}); diff != "" {
		t.Errorf("files (-got +want):\n%s", diff)
	}
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sessiontest.SessionOf(nil), ""))
}

func TestSA12Files(t *testing.T) {
	dir := t.TempDir()
	meta := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "v", Op: "VarHandleOp"}}}}
	s := &Saver{MetaGraph: meta, LatestFilename: "latest", PadStep: true}
	save(t, s, sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)}), filepath.Join(dir, "m"), 7)
	want := []string{"latest", "m-00000007.data-00000-of-00001", "m-00000007.index", "m-00000007.manifest.json", "m-00000007.meta"}
	if diff := cmp.Diff(sessiontest.Files(t, dir, "*"), want); diff != "" {
		t.Errorf("files (-got +want):\n%s", diff)
	}
	got, err := metagraph.Read(filepath.Join(dir, "m-00000007.meta"))
	sessiontest.MustNoErr(t, err)
	if got.GetGraphDef().GetNode()[0].GetName() != "v" {
		t.Errorf("meta graph = %v", got)
	}
}

func TestSA18OverwriteIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
	s := new(Saver)
	prefix := save(t, s, sess, path, session.NoStep)
	sess.Set("v", sessiontest.Vector[float32](2))
	save(t, s, sess, path, session.NoStep)
	sess.Set("v", sessiontest.Vector[float32](0))
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, prefix))
	if diff := cmp.Diff(sess.Get("v").Data, sessiontest.Vector[float32](2).Data); diff != "" {
		t.Errorf("v (-got +want):\n%s", diff)
	}
}

func TestPathsInStateFile(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
	dir := t.TempDir()
	t.Chdir(dir)
	sessiontest.MustNoErr(t, os.Mkdir("rel", 0o777))
	for _, tt := range []struct {
		name, path string
		saver      *Saver
		want       string
	}{
		{"CK5 relative by default", filepath.Join(dir, "rel", "m"), new(Saver), "m-1"},
		{"CK4 relative directory", "rel/m", new(Saver), "m-1"},
		{"absolute by option", "rel/m", &Saver{AbsolutePaths: true}, filepath.Join(dir, "rel", "m-1")},
	} {
		prefix := save(t, tt.saver, sess, tt.path, 1)
		if !filepath.IsAbs(prefix) {
			t.Errorf("%s: Save = %q; want an absolute path", tt.name, prefix)
		}
		text, err := os.ReadFile("rel/checkpoint")
		sessiontest.MustNoErr(t, err)
		want := "model_checkpoint_path: \"" + tt.want + "\"\nall_model_checkpoint_paths: \"" + tt.want + "\"\n"
		if diff := cmp.Diff(string(text), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
	}
}

func TestMismatchListsEverything(t *testing.T) {
	prefix := save(t, new(Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{
		"same": sessiontest.Vector[float32](1), "shape": sessiontest.Vector[float32](1, 2, 3), "dtype": sessiontest.Vector(1.5), "extra": sessiontest.Vector[float32](1), "rank": sessiontest.Vector[float32](1),
	}), filepath.Join(t.TempDir(), "m"), 4)
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{
		"same": sessiontest.Vector[float32](9), "shape": sessiontest.Vector[float32](1, 2), "dtype": sessiontest.Vector[float32](1), "missing": sessiontest.Vector[float32](1), "rank": ckptfmt.Scalar(float32(0)),
	})
	err := new(Saver).Restore(t.Context(), sess, prefix)
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatalf("Restore = %v; want a MismatchError", err)
	}
	want := "checkpoint " + prefix + ` is of a different model:
  dtype: the model has float32 [1], the checkpoint float64 [1]
  missing: missing in the checkpoint; the model has float32 [1]
  rank: the model has float32 [], the checkpoint float32 [1]
  shape: the model has float32 [2], the checkpoint float32 [3]
  extra: only in the checkpoint
use a new logdir for the changed model, or change the model back`
	if diff := cmp.Diff(err.Error(), want); diff != "" {
		t.Errorf("message (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(sess.Get("same").Data, sessiontest.Vector[float32](9).Data); diff != "" {
		t.Errorf("SA36: same was assigned although the checkpoint was refused:\n%s", diff)
	}
}

func TestSA34Reshape(t *testing.T) {
	six, err := ckptfmt.FromValues([]int64{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	sessiontest.MustNoErr(t, err)
	prefix := save(t, new(Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": six}), filepath.Join(t.TempDir(), "m"), 1)
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](0, 0, 0, 0, 0, 0)})
	var mismatch *MismatchError
	if err := new(Saver).Restore(t.Context(), sess, prefix); !errors.As(err, &mismatch) {
		t.Errorf("without Reshape: %v; want a MismatchError", err)
	}
	sessiontest.MustNoErr(t, (&Saver{Reshape: true}).Restore(t.Context(), sess, prefix))
	if diff := cmp.Diff(sess.Get("v"), sessiontest.Vector[float32](1, 2, 3, 4, 5, 6)); diff != "" {
		t.Errorf("v (-got +want):\n%s", diff)
	}
	small := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](0)})
	if err := (&Saver{Reshape: true}).Restore(t.Context(), small, prefix); !errors.As(err, &mismatch) {
		t.Errorf("with another number of elements: %v; want a MismatchError", err)
	}
}

// The session's own state travels with the checkpoint and is not taken for a
// variable.
func TestSessionStateIsSaved(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
	state := ckptfmt.NamedTensor{Name: session.StatePrefix + "random/x", Tensor: sessiontest.Vector[uint64](7, 8)}
	sess.State = []ckptfmt.NamedTensor{state}
	prefix := save(t, new(Saver), sess, filepath.Join(t.TempDir(), "m"), 1)
	if diff := cmp.Diff(keys(t, prefix), []string{"_trainerd/random/x", "v"}); diff != "" {
		t.Errorf("keys (-got +want):\n%s", diff)
	}
	other := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](0)})
	sessiontest.MustNoErr(t, new(Saver).Restore(t.Context(), other, prefix))
	if diff := cmp.Diff(other.Restored[1], state); diff != "" {
		t.Errorf("restored state (-got +want):\n%s", diff)
	}
}

func TestRestoreErrors(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
	dir := t.TempDir()
	good := save(t, new(Saver), sess, filepath.Join(dir, "m"), 1)
	tests := []struct {
		name   string
		damage func(t *testing.T, prefix string)
		file   string
		want   error
	}{
		{"SA30 not there", func(t *testing.T, p string) { sessiontest.MustNoErr(t, os.Remove(p+".index")) }, ".index", os.ErrNotExist},
		{"SA32 data missing", func(t *testing.T, p string) { sessiontest.MustNoErr(t, os.Remove(p+".data-00000-of-00001")) }, ".data-00000-of-00001", os.ErrNotExist},
		{"SA33 data damaged", func(t *testing.T, p string) { sessiontest.FlipByte(t, p+".data-00000-of-00001") }, ".data-00000-of-00001", ckptfmt.ErrChecksum},
		{"SA33 data cut", func(t *testing.T, p string) { sessiontest.MustNoErr(t, os.Truncate(p+".data-00000-of-00001", 2)) }, ".data-00000-of-00001", nil},
		{"SA33 index cut", func(t *testing.T, p string) { sessiontest.MustNoErr(t, os.Truncate(p+".index", 10)) }, ".index", nil},
		{"SA33 index empty", func(t *testing.T, p string) { sessiontest.MustNoErr(t, os.Truncate(p+".index", 0)) }, ".index", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prefix := filepath.Join(sessiontest.CopyDir(t, dir), filepath.Base(good))
			tt.damage(t, prefix)
			err := new(Saver).Restore(t.Context(), sess, prefix)
			var bad *Error
			if !errors.As(err, &bad) || bad.Prefix != prefix || bad.File != prefix+tt.file {
				t.Fatalf("Restore = %#v; want a CheckpointError at %s", err, tt.file)
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Restore = %v; want %v", err, tt.want)
			}
		})
	}
	if err := new(Saver).Restore(t.Context(), sess, ""); err == nil {
		t.Error("Restore of no path succeeds")
	}
}

// Every byte of a checkpoint's files: a flip is found, or does not matter.
func TestRestoreFindsEveryFlip(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1, 2), "global_step": ckptfmt.Scalar(int64(1))})
	dir := t.TempDir()
	prefix := save(t, new(Saver), sess, filepath.Join(dir, "m"), 1)
	for _, suffix := range []string{".index", ".data-00000-of-00001"} {
		whole, err := os.ReadFile(prefix + suffix)
		sessiontest.MustNoErr(t, err)
		for i := range whole {
			b := slices.Clone(whole)
			b[i] ^= 0x10
			sessiontest.MustNoErr(t, os.WriteFile(prefix+suffix, b, 0o666))
			sess.Set("v", sessiontest.Vector[float32](0, 0))
			err := new(Saver).Restore(t.Context(), sess, prefix)
			if v := sess.Get("v"); err == nil && !slices.Equal(v.Data, sessiontest.Vector[float32](1, 2).Data) {
				t.Errorf("byte %d of %s: restored %v without an error", i, suffix, v)
			}
		}
		sessiontest.MustNoErr(t, os.WriteFile(prefix+suffix, whole, 0o666))
	}
}

// A session that does not give out its variables saves through its graph's ops.
func TestSaveByOps(t *testing.T) {
	dir := t.TempDir()
	inner := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](5), "global_step": ckptfmt.Scalar(int64(12))})
	def := &tfpb.SaverDef{FilenameTensorName: "save/Const:0", SaveTensorName: "save/control_dependency:0", RestoreOpName: "save/restore_all"}
	inner.Ops["save/control_dependency"] = func(s *sessiontest.Session, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
		prefix := string(feeds["save/Const:0"].Strings[0])
		w, err := ckptfmt.CreateBundle(prefix, nil)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		return feeds["save/Const:0"], errors.Join(w.Add("v", s.Vars["v"].Value), w.Finish())
	}
	restored := ""
	inner.Ops["save/restore_all"] = func(_ *sessiontest.Session, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
		restored = string(feeds["save/Const:0"].Strings[0])
		return nil, nil
	}
	sess := sessiontest.OpSession{Session: inner}
	s := &Saver{Def: def}
	cut, err := s.Snapshot(t.Context(), sess, "global_step")
	sessiontest.MustNoErr(t, err)
	if cut.Step != 12 {
		t.Errorf("step %d; want 12", cut.Step)
	}
	prefix, err := s.Write(t.Context(), cut, filepath.Join(dir, "m"), cut.Step)
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, prefix))
	if restored != prefix {
		t.Errorf("restored %q; want %q", restored, prefix)
	}
	sessiontest.FlipByte(t, prefix+".data-00000-of-00001")
	var bad *Error
	if err := s.Restore(t.Context(), sess, prefix); !errors.As(err, &bad) {
		t.Errorf("Restore of damaged data = %v; want a CheckpointError", err)
	}
	if _, err := new(Saver).Save(t.Context(), sess, filepath.Join(dir, "n"), 1); err == nil || !strings.Contains(err.Error(), "SaverDef") {
		t.Errorf("Save without a SaverDef = %v; want an error that says so", err)
	}
}

func TestWriteCancelled(t *testing.T) {
	dir := t.TempDir()
	s := new(Saver)
	cut, err := s.Snapshot(t.Context(), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)}), "")
	sessiontest.MustNoErr(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Write(ctx, cut, filepath.Join(dir, "m"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Write = %v; want the cancellation", err)
	}
	if left := sessiontest.Files(t, dir, "*"); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

// restoreFirst restores the first checkpoint of a directory that is intact, as a
// restart does, and returns its prefix, "" for none.
func restoreFirst(t *testing.T, sess session.Session, dir, basename string) string {
	t.Helper()
	found, err := Find(dir, DefaultLatestFilename, basename)
	sessiontest.MustNoErr(t, err)
	for _, prefix := range found.Prefixes {
		if err := new(Saver).Restore(t.Context(), sess, prefix); err == nil {
			return prefix
		}
	}
	return ""
}

func TestWrites(t *testing.T) {
	s := &Saver{LatestFilename: "newest"}
	for name, want := range map[string]bool{"newest": true, "model.ckpt-1.index": true, "checkpoint": false, "model.ckpt": false, "model.ckpt2-1.index": false} {
		if got := s.Writes("model.ckpt", name); got != want {
			t.Errorf("it writes %s: %v", name, got)
		}
	}
}
