package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Of saves in all kinds of files, with a graph and a rotation of one, any operation
// fails: either the save reports it, and the one before is current, or the new one
// is. The save after that leaves just its own files.
func TestSaveEveryOperationFails(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := sessiontest.MemoryDir(t)
				path := filepath.Join(dir, "m")
				s := &Saver{Shards: kind.Shards, Format: kind.Format, MaxToKeep: 1, MetaGraph: &tfpb.MetaGraphDef{}}
				save(t, s, twoVariables(1), path, 1)
				fsys := faultfs.New(n)
				s.FS = fsys
				_, err := s.Save(t.Context(), twoVariables(2), path, 2)
				done := fsys.Ops() < n
				s.FS = nil
				checkCurrent(t, fsys.Failed(), dir, err)
				if err != nil && !errors.Is(err, faultfs.ErrInjected) {
					t.Errorf("%s fails: %v", fsys.Failed(), err)
				}
				last := save(t, s, twoVariables(3), path, 3)
				for _, left := range sessiontest.Files(t, dir, "*") {
					if left != "checkpoint" && !strings.HasPrefix(left, filepath.Base(unsharded(last))) && !strings.Contains(left, "temp") { // those are removed by the next start
						t.Errorf("%s fails: %s is left after the next save", fsys.Failed(), left)
					}
				}
				if done {
					sessiontest.MustNoErr(t, err)
					return
				}
			}
		})
	}
}

// checkCurrent checks that the current checkpoint is that of step 2, or of step 1
// after an error.
func checkCurrent(t *testing.T, what, dir string, err error) {
	t.Helper()
	found, findErr := Find(dir, DefaultLatestFilename, "m")
	sessiontest.MustNoErr(t, findErr)
	sess := twoVariables(0)
	sessiontest.MustNoErr(t, new(Saver).Restore(t.Context(), sess, found.Prefixes[0]))
	step, value := stepOf(unsharded(found.Prefixes[0])), first(t, sess.Get("v"))
	if value != float64(step) || err == nil && step != 2 {
		t.Errorf("%s fails (%v): current is step %d with value %v", what, err, step, value)
	}
}

// Where there is no directory yet, it is durable before the first save is announced.
func TestFirstSaveEveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := filepath.Join(sessiontest.MemoryDir(t), "new")
		fsys := faultfs.New(n)
		_, err := (&Saver{FS: fsys, NoManifest: true}).Save(t.Context(), twoVariables(1), filepath.Join(dir, "m"), 1)
		if fsys.Ops() < n {
			sessiontest.MustNoErr(t, err)
			return
		}
		if err == nil && fsys.FailedKind() != "remove" {
			t.Errorf("%s fails, and nothing is reported", fsys.Failed())
		}
	}
}

// The names above a directory are synced once, by the first save there.
func TestDirectoryIsSyncedOnce(t *testing.T) {
	dir, other := sessiontest.MemoryDir(t), sessiontest.MemoryDir(t)
	count := func(s *Saver, dir string, step int64) int {
		fsys := faultfs.New(0)
		s.FS = fsys
		save(t, s, twoVariables(1), filepath.Join(dir, "m"), step)
		return fsys.Ops()
	}
	s := new(Saver)
	one, two, three := count(s, dir, 1), count(s, dir, 2), count(s, other, 3)
	if two >= one || three <= two {
		t.Errorf("operations: %d, %d, in another directory %d", one, two, three)
	}
}

// refuseRemove is a disk that does not delete some files.
type refuseRemove struct {
	atomicfile.FS
	name string // a part of the names; "" refuses none
}

func (f *refuseRemove) Remove(name string) error {
	if f.name != "" && strings.Contains(name, f.name) {
		return faultfs.ErrInjected
	}
	return f.FS.Remove(name)
}

// The shards of a save before, kept while it is overwritten, that cannot be deleted are an
// error, and stay for the next attempt.
func TestPreviousShardsCannotBeDeleted(t *testing.T) {
	dir := t.TempDir()
	pattern := filepath.Join(dir, "m-1-?????-of-00002")
	for i := range 2 {
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("m-1%s-%05d-of-00002", previousSuffix, i)), nil, 0o666))
	}
	disk := &refuseRemove{FS: atomicfile.OrOS(nil), name: "00001-of"}
	s := &Saver{FS: disk, Format: FormatV1, Shards: 2}
	if err := s.removePreviousShards(pattern); !errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("error %v", err)
	}
	if left := sessiontest.Files(t, dir, "*-00001-of-*"); len(left) != 1 {
		t.Errorf("left %q", left)
	}
	disk.name = ""
	if err := s.removePreviousShards(pattern); err != nil || len(sessiontest.Files(t, dir, "*")) > 0 {
		t.Errorf("later: %v, left %q", err, sessiontest.Files(t, dir, "*"))
	}
}

// An old checkpoint that cannot be deleted is listed until it can, and stays whole.
func TestDeletedLater(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.MemoryDir(t)
			disk := &refuseRemove{FS: atomicfile.OrOS(nil)}
			log, lines := sessiontest.NewLog()
			s := &Saver{MaxToKeep: 1, FS: disk, Logger: log, Shards: kind.Shards, Format: kind.Format, MetaGraph: &tfpb.MetaGraphDef{}}
			one := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
			disk.name = "m-1"
			save(t, s, twoVariables(2), filepath.Join(dir, "m"), 2)
			sessiontest.WantLog(t, lines, "old checkpoint could not be deleted")
			three := save(t, s, twoVariables(3), filepath.Join(dir, "m"), 3)
			state, err := ckptdir.ReadState(dir, nil)
			sessiontest.MustNoErr(t, err)
			if diff := cmp.Diff(state.GetAllModelCheckpointPaths(), []string{one, three}); diff != "" {
				t.Errorf("listed (-got +want):\n%s", diff)
			}
			sessiontest.MustNoErr(t, new(Saver).Restore(t.Context(), twoVariables(0), one))
			disk.name = ""
			four := save(t, s, twoVariables(4), filepath.Join(dir, "m"), 4)
			state, err = ckptdir.ReadState(dir, nil)
			sessiontest.MustNoErr(t, err)
			if diff := cmp.Diff(state.GetAllModelCheckpointPaths(), []string{four}); diff != "" || whole(one) {
				t.Errorf("listed (-got +want):\n%s", diff)
			}
			if strings.Contains(lines.String(), "still names deleted") {
				t.Errorf("log:\n%s", lines)
			}
			if got := sessiontest.Files(t, dir, "m-1*"); len(got) > 0 {
				t.Errorf("left: %v", got)
			}
			disk.name = "m-4.meta"
			save(t, s, twoVariables(5), filepath.Join(dir, "m"), 5)
			save(t, s, twoVariables(6), filepath.Join(dir, "m"), 6)
			disk.name = ""
			save(t, s, twoVariables(7), filepath.Join(dir, "m"), 7)
			if got := sessiontest.Files(t, dir, "m-4*"); len(got) > 0 {
				t.Errorf("left of one that was deleted in part: %v", got)
			}
		})
	}
}

// A checkpoint that is saved again while it waits for its deletion stays.
func TestSavedAgainBeforeItsDeletion(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	disk := &refuseRemove{FS: atomicfile.OrOS(nil)}
	s := &Saver{MaxToKeep: 1, FS: disk}
	one := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
	disk.name = "m-1.index"
	save(t, s, twoVariables(2), filepath.Join(dir, "m"), 2)
	disk.name = ""
	save(t, s, twoVariables(5), filepath.Join(dir, "m"), 1)
	sess := twoVariables(0)
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, one))
	if got := first(t, sess.Get("v")); got != 5 {
		t.Errorf("value %v", got)
	}
	if got := sessiontest.Files(t, dir, "*.index"); !slices.Equal(got, []string{"m-1.index"}) {
		t.Errorf("checkpoints %v", got)
	}
	s.MaxToKeep = 2
	save(t, s, twoVariables(6), filepath.Join(dir, "m"), 6)
	if got := sessiontest.Files(t, dir, "*.index"); !slices.Equal(got, []string{"m-1.index", "m-6.index"}) {
		t.Errorf("checkpoints after the next save: %v", got)
	}
}

// Where the graph cannot be written, the checkpoint is not announced, and goes with
// the next save.
func TestGraphCannotBeWritten(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	sessiontest.MustNoErr(t, os.MkdirAll(filepath.Join(dir, "m-2.meta", "x"), 0o777))
	s := &Saver{MetaGraph: &tfpb.MetaGraphDef{}}
	one := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
	if _, err := s.Save(t.Context(), twoVariables(2), filepath.Join(dir, "m"), 2); err == nil {
		t.Fatal("saved without its graph")
	}
	if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || prefix != one {
		t.Errorf("current is %s, %v", prefix, err)
	}
	save(t, s, twoVariables(3), filepath.Join(dir, "m"), 3)
	if got := sessiontest.Files(t, dir, "*.index"); !slices.Equal(got, []string{"m-1.index", "m-3.index"}) {
		t.Errorf("checkpoints %v", got)
	}
	// One that is in the rotation already is not deleted for that.
	sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, "m-1.meta")))
	sessiontest.MustNoErr(t, os.MkdirAll(filepath.Join(dir, "m-1.meta", "x"), 0o777))
	if _, err := s.Save(t.Context(), twoVariables(4), filepath.Join(dir, "m"), 1); err == nil {
		t.Fatal("saved without its graph")
	}
	save(t, s, twoVariables(5), filepath.Join(dir, "m"), 5)
	if !whole(one) {
		t.Errorf("checkpoints %v", sessiontest.Files(t, dir, "*.index"))
	}
}

// A checkpoint of a run that keeps all is written again, without its graph: the save fails,
// and no later one takes the checkpoint away.
func TestOverwrittenWithoutGraph(t *testing.T) {
	kinds := savers()
	kinds["V1"] = &Saver{Format: FormatV1}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.MemoryDir(t)
			s := &Saver{MetaGraph: &tfpb.MetaGraphDef{}, MaxToKeep: -1, Format: kind.Format, Shards: kind.Shards}
			one := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
			sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, "m-1.meta")))
			sessiontest.MustNoErr(t, os.MkdirAll(filepath.Join(dir, "m-1.meta", "x"), 0o777))
			if _, err := s.Save(t.Context(), twoVariables(2), filepath.Join(dir, "m"), 1); err == nil {
				t.Fatal("saved without its graph")
			}
			save(t, s, twoVariables(3), filepath.Join(dir, "m"), 3)
			if !present(one) {
				t.Errorf("left: %v", sessiontest.Files(t, dir, "*"))
			}
		})
	}
}

func TestCheckPath(t *testing.T) {
	s := new(Saver)
	for _, path := range []string{"", ".", "/", "dir/", "//"} {
		if err := s.CheckPath(path, 1); err == nil {
			t.Errorf("%q is accepted", path)
		}
	}
	for path, step := range map[string]int64{"m": 0, "/m": 0, "checkpoint": 0, "dir/checkpoint": 5, "..m": session.NoStep} {
		if err := s.CheckPath(path, step); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, name := range []string{".", "..", "a/b", "/a"} {
		if err := (&Saver{LatestFilename: name}).CheckPath("m", 1); err == nil {
			t.Errorf("a state file %q is accepted", name)
		}
	}
}

// failingStore does not take values.
type failingStore struct{ *sessiontest.Session }

func (failingStore) Restore(context.Context, []ckptfmt.NamedTensor) error { return errStore }

func TestRestoreFails(t *testing.T) {
	dir := t.TempDir()
	s := new(Saver)
	prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
	if err := s.Restore(t.Context(), failingStore{twoVariables(0)}, prefix); !errors.Is(err, errStore) || s.RestoredValues() != nil {
		t.Errorf("a session that takes no values: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStore)
	if err := s.Restore(ctx, twoVariables(0), prefix); !errors.Is(err, errStore) {
		t.Errorf("cancelled: %v", err)
	}
	if err := (&Saver{Variables: VariableList("x")}).Restore(t.Context(), twoVariables(0), prefix); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("no such variable: %v", err)
	}
	if err := (&Saver{AllowEmpty: true}).Restore(t.Context(), sessiontest.SessionOf(nil), filepath.Join(dir, "none")); err != nil {
		t.Errorf("nothing to restore: %v", err)
	}
	v1 := save(t, &Saver{Format: FormatV1, Shards: 2}, twoVariables(1), filepath.Join(dir, "old"), 1)
	sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, "old-1-00001-of-00002")))
	var damage *Error
	if err := s.Restore(t.Context(), twoVariables(0), v1); !errors.As(err, &damage) || damage.File != filepath.Join(dir, "old-1-00001-of-00002") {
		t.Errorf("a file of V1 is missing: %v", err)
	}
}

// What the checkpoint has besides the model is logged, in order, and nothing else.
func TestExtraTensorsAreSaid(t *testing.T) {
	for _, extra := range [][]string{{"z"}, {"z", "a", "k"}} {
		tensors := map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1), "w": sessiontest.Vector[float32](1, 1)}
		for _, name := range extra {
			tensors[name] = ckptfmt.Scalar(int32(1))
		}
		prefix := save(t, new(Saver), sessiontest.SessionOf(tensors), filepath.Join(t.TempDir(), "m"), 1)
		log, lines := sessiontest.NewLog()
		sessiontest.MustNoErr(t, (&Saver{Logger: log}).Restore(t.Context(), twoVariables(0), prefix))
		sessiontest.WantLog(t, lines, "tensors that the model does not use", fmt.Sprint(slices.Sorted(slices.Values(extra))))
	}
	log, lines := sessiontest.NewLog()
	again := save(t, new(Saver), twoVariables(1), filepath.Join(t.TempDir(), "m"), 1)
	sessiontest.MustNoErr(t, (&Saver{Logger: log}).Restore(t.Context(), twoVariables(0), again))
	if lines.String() != "" {
		t.Errorf("log: %s", lines)
	}
}

// harmless are operations whose failure changes nothing: a file is copied where it
// cannot have a second name, and closed after its sync; what cannot be removed is
// removed later.
var harmless = []string{"link", "remove", "close", "close after reading"}

// A checkpoint of an earlier run that is written again stays, whatever fails.
func TestFailedOverwriteStays(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := sessiontest.MemoryDir(t)
				one := save(t, &Saver{Shards: kind.Shards, Format: kind.Format}, twoVariables(1), filepath.Join(dir, "m"), 1)
				fsys := faultfs.New(n)
				log, lines := sessiontest.NewLog()
				s := &Saver{Shards: kind.Shards, Format: kind.Format, FS: fsys, Logger: log}
				_, err := s.Save(t.Context(), twoVariables(2), filepath.Join(dir, "m"), 1)
				if fsys.Ops() < n {
					sessiontest.MustNoErr(t, err)
					return
				}
				if err == nil && !slices.Contains(harmless, fsys.FailedKind()) && !strings.Contains(lines.String(), "level=WARN") {
					t.Errorf("%s fails, and nothing is reported", fsys.Failed())
				}
				s.FS = nil
				save(t, s, twoVariables(3), filepath.Join(dir, "m"), 3)
				if !whole(one) && !whole(previousName(one)) {
					t.Errorf("%s fails: %v", fsys.Failed(), sessiontest.Files(t, dir, "*"))
				}
			}
		})
	}
}

// deletes removes files when the state file is renamed into place, and was as often as
// spared says.
type deletes struct {
	atomicfile.FS
	pattern string
	spared  int
}

func (d *deletes) Rename(from, to string) error {
	if filepath.Base(to) != ckptdir.StateName || d.pattern == "" {
		return d.FS.Rename(from, to)
	}
	if d.spared--; d.spared < 0 {
		files, _ := filepath.Glob(d.pattern)
		for _, name := range files {
			os.Remove(name)
		}
	}
	return d.FS.Rename(from, to)
}

// A checkpoint that is deleted while it is saved is not announced, and those before it stay.
func TestDeletedWhileSaved(t *testing.T) {
	for kind, s := range map[string]*Saver{"V2": {Format: FormatV2}, "V1": {Format: FormatV1}, "by ops": {Def: byOps}} {
		dir := sessiontest.MemoryDir(t)
		disk := &deletes{FS: atomicfile.OrOS(nil)}
		s.FS, s.Retention = disk, []retention.Policy{retention.Last(1)}
		var sess session.Session = twoVariables(1)
		if s.Def != nil {
			sess = opsSession(t, true)
		}
		first := save(t, s, sess, filepath.Join(dir, "m"), 1)
		disk.pattern = filepath.Join(dir, "m-2*")
		if prefix, err := s.Save(t.Context(), sess, filepath.Join(dir, "m"), 2); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s was announced, %v", kind, prefix, err)
		}
		sessiontest.MustNoErr(t, ckptdir.Verify(t.Context(), first))
		if latest, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || latest != first {
			t.Errorf("%s: the state file names %q, %v", kind, latest, err)
		}
		if kept := s.LastCheckpoints(); !slices.Equal(kept, []string{first}) {
			t.Errorf("%s: kept are %v", kind, kept)
		}
		disk.pattern = ""
		save(t, s, sess, filepath.Join(dir, "m"), 2)
		disk.pattern, disk.spared = filepath.Join(dir, "m-3*"), 1 // when those before it are gone
		if prefix, err := s.Save(t.Context(), sess, filepath.Join(dir, "m"), 3); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s was announced, %v", kind, prefix, err)
		}
		if _, err := ckptdir.ReadState(dir, nil); !ckptdir.IsNoState(err) {
			t.Errorf("%s: without any checkpoint there is a state file, %v", kind, err)
		}
		disk.pattern = ""
		save(t, s, sess, filepath.Join(dir, "m"), 3)
		if files := sessiontest.Files(t, dir, "m-1*"); len(files) > 0 {
			t.Errorf("%s: after the next save there is %v", kind, files)
		}
	}
}

// A first save that is deleted does not move the beginning of the periods of KeepEvery to
// the beginning of time, from which the next checkpoint would be an hour later.
func TestDeletedWhileFirstSaved(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	disk := &deletes{FS: atomicfile.OrOS(nil), pattern: filepath.Join(dir, "m-1*")}
	s := &Saver{FS: disk, MaxToKeep: 1, KeepEvery: time.Hour}
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1, 2)})
	if prefix, err := s.Save(t.Context(), sess, filepath.Join(dir, "m"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was announced, %v", prefix, err)
	}
	for step := range int64(3) {
		save(t, s, sess, filepath.Join(dir, "m"), 2+step)
	}
	if files := sessiontest.Files(t, dir, "m-[23].index"); len(files) > 0 {
		t.Errorf("of checkpoints that were saved within seconds %v stay", files)
	}
}
