package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

var byOps = &tfpb.SaverDef{FilenameTensorName: "save/Const:0", SaveTensorName: "save/all:0", RestoreOpName: "save/restore_all"}

// opsSession saves and restores its variable v by ops, on a disk that may be another
// machine's.
func opsSession(t *testing.T, onDisk bool) sessiontest.OpSession {
	inner := twoVariables(1)
	inner.Ops["save/all"] = func(s *sessiontest.Session, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
		if !onDisk {
			return nil, nil
		}
		if layout.Exists(string(feeds["save/Const:0"].Strings[0])) {
			t.Error("TensorFlow would write into the index of the checkpoint that is kept")
		}
		w, err := ckptfmt.CreateBundle(string(feeds["save/Const:0"].Strings[0]), nil)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		return nil, errors.Join(w.Add("v", s.Vars["v"].Value), w.Add("w", s.Vars["w"].Value), w.Finish())
	}
	inner.Ops["save/restore_all"] = func(*sessiontest.Session, map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) { return nil, nil }
	return sessiontest.OpSession{Session: inner}
}

// A checkpoint that only the session can see is saved with a warning, and restored
// without a look at it; one that the session cannot find is not there.
func TestByOpsElsewhere(t *testing.T) {
	log, lines := sessiontest.NewLog()
	s := &Saver{Def: byOps, Logger: log}
	sess := opsSession(t, false)
	prefix, err := s.Save(t.Context(), sess, filepath.Join(t.TempDir(), "m"), 1)
	sessiontest.MustNoErr(t, err)
	sessiontest.WantLog(t, lines, "checkpoint is not visible from this machine")
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, prefix))

	inner := sess.Session.(*sessiontest.Session)
	notFound := &session.OpError{Code: tfpb.Code_NOT_FOUND}
	fail := func(err error) {
		inner.Ops["save/restore_all"] = func(*sessiontest.Session, map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) { return nil, err }
	}
	var damage *Error
	fail(notFound)
	if err := s.Restore(t.Context(), sess, prefix); !errors.As(err, &damage) {
		t.Errorf("not there: %v", err)
	}
	fail(errStore)
	if err := s.Restore(t.Context(), sess, prefix); errors.As(err, &damage) || !errors.Is(err, errStore) {
		t.Errorf("the session fails: %v", err)
	}
	here := save(t, new(Saver), twoVariables(1), filepath.Join(t.TempDir(), "m"), 1)
	fail(notFound)
	if err := s.Restore(t.Context(), sess, here); errors.As(err, &damage) || !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an op is not found: %v", err)
	}
}

// A checkpoint that is deleted while the session saves is not announced, with its folder, which
// is made again, or alone, where the one before it was visible. The next save is as any other.
func TestByOpsDeletedMeanwhile(t *testing.T) {
	for _, alone := range []bool{false, true} {
		sess, dir := opsSession(t, true), filepath.Join(sessiontest.MemoryDir(t), "logdir")
		log, lines := sessiontest.NewLog()
		s := &Saver{Def: byOps, Logger: log}
		if alone {
			save(t, s, sess, filepath.Join(dir, "m"), 1)
		}
		ops := sess.Session.(*sessiontest.Session).Ops
		write := ops["save/all"]
		ops["save/all"] = func(s *sessiontest.Session, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
			_, err := write(s, feeds)
			if !alone {
				return nil, errors.Join(err, os.RemoveAll(dir), os.Mkdir(dir, 0o777))
			}
			for _, name := range sessiontest.Files(t, dir, "m-2*") {
				err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
			}
			return nil, err
		}
		if prefix, err := s.Save(t.Context(), sess, filepath.Join(dir, "m"), 2); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("alone %v: %s was announced, %v", alone, prefix, err)
		}
		if strings.Contains(lines.String(), "not visible") {
			t.Errorf("alone %v: %s", alone, lines)
		}
		ops["save/all"] = write
		save(t, s, sess, filepath.Join(dir, "m"), 2)
	}
}

// A session whose saves are no longer visible, since its server has moved, loses one of them.
func TestByOpsMoves(t *testing.T) {
	s, path := &Saver{Def: byOps}, filepath.Join(t.TempDir(), "m")
	save(t, s, opsSession(t, true), path, 1)
	for step := range int64(2) {
		if _, err := s.Save(t.Context(), opsSession(t, false), path, 2+step); (err == nil) != (step == 1) {
			t.Errorf("save %d from elsewhere: %v", step+1, err)
		}
	}
}

// What the session has written is synced before it counts, and the one that it
// overwrites is there until then.
func TestByOpsEveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := sessiontest.MemoryDir(t)
		s := &Saver{Def: byOps}
		prefix, err := s.Save(t.Context(), opsSession(t, true), filepath.Join(dir, "m"), session.NoStep)
		sessiontest.MustNoErr(t, err)
		fsys := faultfs.New(n)
		log, lines := sessiontest.NewLog()
		s.FS, s.Logger = fsys, log
		sess, written := opsSession(t, true), n
		ops := sess.Session.(*sessiontest.Session).Ops
		write := ops["save/all"]
		ops["save/all"] = func(s *sessiontest.Session, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
			written = fsys.Ops()
			return write(s, feeds)
		}
		_, err = s.Save(t.Context(), sess, filepath.Join(dir, "m"), session.NoStep)
		if n == written+1 && fsys.FailedKind() != "sync directory" {
			t.Errorf("what the session has written is followed by %s", fsys.Failed())
		}
		if fsys.Ops() < n {
			sessiontest.MustNoErr(t, err)
			if n < 6 {
				t.Errorf("only %d operations", n)
			}
			return
		}
		tolerated := slices.Contains(harmless, fsys.FailedKind()) || strings.Contains(lines.String(), "level=WARN")
		if !tolerated && !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s fails: %v", fsys.Failed(), err)
		}
		found := restoreFirst(t, twoVariables(0), dir, "m")
		if original, _ := cutPrevious(found); original != prefix {
			t.Errorf("%s fails: found %q", fsys.Failed(), found)
		}
	}
}

func TestByOpsErrors(t *testing.T) {
	sess := opsSession(t, true)
	dir := t.TempDir()
	for name, def := range map[string]*tfpb.SaverDef{
		"no feed":    {SaveTensorName: "save/all:0", RestoreOpName: "save/restore_all"},
		"no save":    {FilenameTensorName: "save/Const:0", RestoreOpName: "save/restore_all"},
		"no restore": {FilenameTensorName: "save/Const:0", SaveTensorName: "save/all:0"},
	} {
		s := &Saver{Def: def}
		if err := s.Check(t.Context(), sess); err == nil || !strings.Contains(err.Error(), "SaverDef") {
			t.Errorf("%s: Check: %v", name, err)
		}
		if _, err := s.Save(t.Context(), sess, filepath.Join(dir, "m"), 1); err == nil {
			t.Errorf("%s: saved", name)
		}
		if err := s.Restore(t.Context(), sess, filepath.Join(dir, "m-1")); err == nil || !strings.Contains(err.Error(), "SaverDef") {
			t.Errorf("%s: restored: %v", name, err)
		}
	}
	sessiontest.MustNoErr(t, (&Saver{MetaGraph: &tfpb.MetaGraphDef{SaverDef: byOps}}).Check(t.Context(), sess))
	damaged := &tfpb.MetaGraphDef{CollectionDef: map[string]*tfpb.CollectionDef{"savers": {Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{{0xff}}}}}}}
	if err := (&Saver{MetaGraph: damaged}).Check(t.Context(), sess); err == nil || strings.Contains(err.Error(), "no SaverDef") {
		t.Errorf("a saver in the graph that is damaged: %v", err)
	}
	inner := sess.Session.(*sessiontest.Session)
	inner.Ops["save/all"] = func(*sessiontest.Session, map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) { return nil, errStore }
	if _, err := (&Saver{Def: byOps}).Save(t.Context(), sess, filepath.Join(dir, "m"), 1); !errors.Is(err, errStore) {
		t.Errorf("the op fails: %v", err)
	}
	if err := syncFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("sync of no file: %v", err)
	}
	if err := syncFile(os.DevNull); err == nil && runtime.GOOS == "linux" {
		t.Error("what cannot be synced counts as durable")
	}
}

// The whole checkpoint is verified before the session reads it, unless that is no
// longer wanted.
func TestByOpsVerifies(t *testing.T) {
	dir := t.TempDir()
	s, sess := &Saver{Def: byOps}, opsSession(t, true)
	prefix, err := s.Save(t.Context(), sess, filepath.Join(dir, "m"), 3)
	sessiontest.MustNoErr(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Restore(ctx, sess, prefix); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	sessiontest.MustNoErr(t, os.Truncate(prefix+".index", 20))
	var damage *Error
	if err := s.Restore(t.Context(), sess, prefix); !errors.As(err, &damage) || damage.File != prefix+".index" {
		t.Errorf("a cut index: %v", err)
	}
}

// A run that continues from a checkpoint names it in the manifest of its first save,
// also where the session restores by ops.
func TestParentByOps(t *testing.T) {
	dir := t.TempDir()
	first, err := (&Saver{Def: byOps}).Save(t.Context(), opsSession(t, true), filepath.Join(dir, "m"), 3)
	sessiontest.MustNoErr(t, err)
	s := &Saver{Def: byOps}
	sessiontest.MustNoErr(t, s.Restore(t.Context(), opsSession(t, true), first))
	second, err := s.Save(t.Context(), opsSession(t, true), filepath.Join(dir, "m"), 4)
	sessiontest.MustNoErr(t, err)
	if m, err := manifest.Read(second); err != nil || m.Parent != "m-3" {
		t.Errorf("manifest %+v, %v", m, err)
	}
}

// Who has a snapshot written is told while the session is asked to save itself.
func TestAskingByOps(t *testing.T) {
	s := &Saver{Def: byOps}
	cut, err := s.Snapshot(t.Context(), opsSession(t, true), "")
	sessiontest.MustNoErr(t, err)
	var told []string
	cut.Asking = func() func() {
		told = append(told, "asked")
		return func() { told = append(told, "answered") }
	}
	_, err = s.Write(t.Context(), cut, filepath.Join(t.TempDir(), "m"), 3)
	sessiontest.MustNoErr(t, err)
	if !slices.Equal(told, []string{"asked", "answered"}) {
		t.Errorf("it was told %v", told)
	}
}
