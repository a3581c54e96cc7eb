package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
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
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Check finds what would make every save fail, before the first step.
func TestCheck(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1), "u": sessiontest.Vector[uint64](1)})
	tests := []struct {
		name  string
		saver *Saver
		want  string
	}{
		{"nothing", &Saver{}, ""},
		{"a policy that is nil", &Saver{Retention: []retention.Policy{retention.Last(1), nil}}, "Saver.Retention"},
		{"no such variable", &Saver{Variables: VariableList("x")}, "no variable x"},
		{"a type that V1 has not", &Saver{Format: FormatV1}, "variable u: V1 checkpoints do not hold uint64; save it as V2"},
		{"V1 without it", &Saver{Format: FormatV1, Variables: VariableList("v")}, ""},
		{"V1 asked for by the graph", &Saver{Def: &tfpb.SaverDef{Version: tfpb.SaverDef_V1}}, "variable u"},
		{"V2 asked for by the graph", &Saver{Def: &tfpb.SaverDef{Version: tfpb.SaverDef_V2}}, ""},
	}
	for _, tt := range tests {
		err := tt.saver.Check(t.Context(), sess)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
	if err := new(Saver).Check(t.Context(), sessiontest.OpSession{Session: sess}); err == nil || !strings.Contains(err.Error(), "SaverDef") {
		t.Errorf("a session that saves itself, without ops: %v", err)
	}
}

// A graph whose saver saves more than variables is saved by its ops.
func TestSavedByOps(t *testing.T) {
	g := savingGraph()
	find(g, "read").Op = "LookupTableExportV2"
	s := &Saver{MetaGraph: g}
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"b": sessiontest.Vector[float32](1)})
	sessiontest.MustNoErr(t, s.Check(t.Context(), sess))
	cut, err := s.Snapshot(t.Context(), sess, "")
	sessiontest.MustNoErr(t, err)
	if !cut.BySession() || cut.Values() != nil {
		t.Error("the variables are copied")
	}
	g = savingGraph()
	find(g, "save/SaveV2").Input = nil
	if err := (&Saver{MetaGraph: g}).Check(t.Context(), sess); err == nil {
		t.Error("a graph whose saver makes no sense")
	}
}

// Which variables are saved is for the ops of the graph where these save: a Saver
// that names others is refused, unless it names their ops, too.
func TestVariablesOfASessionThatSavesItself(t *testing.T) {
	g := savingGraph()
	def, err := graph.Collections{Meta: g}.SaverDef()
	sessiontest.MustNoErr(t, err)
	sess := struct{ session.Session }{sessiontest.SessionOf(nil)}
	s := &Saver{Variables: VariableList("b")}
	s.Inherit(&Saver{MetaGraph: g, Def: def})
	_, snapshotErr := s.Snapshot(t.Context(), sess, "")
	for what, err := range map[string]error{
		"Check": s.Check(t.Context(), sess), "Snapshot": snapshotErr, "Restore": s.Restore(t.Context(), sess, "model.ckpt-1"),
	} {
		if err == nil || !strings.Contains(err.Error(), "set Saver.Def") {
			t.Errorf("%s = %v; want what to set", what, err)
		}
	}
	s = &Saver{Variables: VariableList("b"), Def: def, MetaGraph: g}
	sessiontest.MustNoErr(t, s.Check(t.Context(), sess))
}

// What the program has set stays; the rest is that of the Supervisor that uses the
// Saver now.
func TestInherit(t *testing.T) {
	own := slog.New(slog.DiscardHandler)
	meta, def := &tfpb.MetaGraphDef{}, &tfpb.SaverDef{Version: tfpb.SaverDef_V1}
	s := &Saver{Logger: own}
	s.Inherit(&Saver{MetaGraph: meta, Def: def, Logger: slog.Default()})
	if s.MetaGraph != meta || s.Def != def || s.Logger != own || s.format() != FormatV2 {
		t.Errorf("inherits %+v, format %v", s, s.format())
	}
	s.Inherit(&Saver{})
	if s.MetaGraph != nil || s.Def != nil || s.Logger != own {
		t.Errorf("inherits again %+v", s)
	}
	s = new(Saver)
	if s.Inherit(&Saver{Logger: own}); s.Logger != own {
		t.Error("a logger is not inherited")
	}
	s = &Saver{Def: def, MetaGraph: meta}
	s.Inherit(&Saver{Def: &tfpb.SaverDef{}, MetaGraph: &tfpb.MetaGraphDef{}})
	if s.Def != def || s.MetaGraph != meta || s.format() != FormatV1 {
		t.Errorf("what was set is gone: %+v", s)
	}
}

// A graph's list of variables is that of the graph that the Saver has now.
func TestInheritVariables(t *testing.T) {
	g := savingGraph()
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"b": sessiontest.Vector[float32](1), "w/part_0": sessiontest.Vector[float32](1), "w/part_1/shared": sessiontest.Vector[float32](1)})
	s := new(Saver)
	for _, tt := range []struct {
		meta *tfpb.MetaGraphDef
		want int
	}{{g, 3}, {nil, 3}, {g, 3}} {
		s.Inherit(&Saver{MetaGraph: tt.meta})
		_, vars, err := s.variablesOf(t.Context(), sess)
		if err != nil || len(vars) != tt.want {
			t.Fatalf("graph %p: %d variables, %v", tt.meta, len(vars), err)
		}
		if tt.meta == g && vars[0].Key != "renamed" || tt.meta == nil && vars[0].Key != "b" {
			t.Errorf("keys of another graph: %v", vars[0].Key)
		}
	}
	s.Inherit(&Saver{MetaGraph: g, Def: &tfpb.SaverDef{SaveTensorName: "save/SaveV2:0"}})
	if _, vars, err := s.variablesOf(t.Context(), sess); err != nil || len(vars) != 2 {
		t.Errorf("%d variables, not those of another saver of the graph; %v", len(vars), err)
	}
}

func TestKeepEveryOfGraph(t *testing.T) {
	for hours, want := range map[float32]time.Duration{0.5: 30 * time.Minute, 10_000: 10_000 * time.Hour, 0: 0, -1: 0, 3e38: math.MaxInt64, float32(math.NaN()): 0} {
		if got := KeepEvery(&tfpb.SaverDef{KeepCheckpointEveryNHours: hours}); got != want {
			t.Errorf("%v hours: %v; want %v", hours, got, want)
		}
	}
}

// The state file is led back to a checkpoint that is there, once.
func TestMakeCurrent(t *testing.T) {
	dir := t.TempDir()
	s := new(Saver)
	one := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
	save(t, s, twoVariables(2), filepath.Join(dir, "m"), 2)
	current := func() string {
		prefix, err := ckptdir.LatestCheckpoint(dir, nil)
		sessiontest.MustNoErr(t, err)
		return prefix
	}
	sessiontest.MustNoErr(t, s.MakeCurrent(dir, one))
	if got := current(); got != one {
		t.Errorf("current is %s", got)
	}
	if got := len(s.LastCheckpoints()); got != 2 {
		t.Errorf("looks after %d", got)
	}
	sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, "checkpoint")))
	sessiontest.MustNoErr(t, (&Saver{KeepEvery: time.Hour}).MakeCurrent(dir, one))
	if state, err := ckptdir.ReadState(dir, nil); err != nil || state.GetLastPreservedTimestamp() <= 0 {
		t.Errorf("the first keep-every period has not begun: %v, %v", state, err)
	}
	fsys := faultfs.New(0)
	sessiontest.MustNoErr(t, (&Saver{FS: fsys}).MakeCurrent(dir, one))
	if n := fsys.Ops(); n > 0 {
		t.Errorf("%d operations for what is current already", n)
	}
	if err := s.MakeCurrent(dir, filepath.Join(dir, "m-9")); !errors.Is(err, fs.ErrNotExist) || current() != one {
		t.Errorf("one that is not there: %v, current %s", err, current())
	}
	for n := 1; ; n++ {
		sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, "checkpoint")))
		fsys := faultfs.New(n)
		err := (&Saver{FS: fsys}).MakeCurrent(dir, one)
		if fsys.Ops() < n {
			sessiontest.MustNoErr(t, err)
			break
		}
		if err == nil {
			t.Errorf("%s fails, and nothing is reported", fsys.Failed())
		}
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, "checkpoint"), nil, 0o666))
	}
	if got := current(); got != one {
		t.Errorf("current is %s", got)
	}
}

// What is damaged goes aside whole, by whichever files it has; another checkpoint
// stays.
func TestQuarantine(t *testing.T) {
	now := time.Date(2026, 11, 23, 14, 5, 6, 7, time.FixedZone("", 3600))
	for name, s := range savers() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := &Saver{Shards: s.Shards, Format: s.Format}
			prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 3)
			files := sessiontest.Files(t, dir, "m-3*")
			save(t, s, twoVariables(1), filepath.Join(dir, "m"), 30)
			others := sessiontest.Files(t, dir, "m-30*")
			to, err := Quarantine(nil, prefix, now)
			sessiontest.MustNoErr(t, err)
			if want := filepath.Join(dir, "damaged", "m-3-20261123T130506.000000007"); to != want {
				t.Errorf("moved to %s", to)
			}
			for i := len(files) - 1; i >= 0; i-- {
				if strings.HasPrefix(files[i], "m-30") {
					files = append(files[:i], files[i+1:]...)
				}
			}
			if diff := cmp.Diff(sessiontest.Files(t, to, "*"), files); diff != "" {
				t.Errorf("moved (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(sessiontest.Files(t, dir, "m-*"), others); diff != "" {
				t.Errorf("left (-got +want):\n%s", diff)
			}
			if to, err := Quarantine(nil, prefix, now); to != "" || err != nil {
				t.Errorf("of one that is not there: %q, %v", to, err)
			}
			if _, err := Quarantine(nil, filepath.Join(dir, "none", filepath.Base(prefix)), now); s.Format == FormatV2 && err == nil {
				t.Error("in a folder that is not there")
			}
			if _, err := Quarantine(nil, filepath.Join(dir, others[0], filepath.Base(prefix)), now); err == nil {
				t.Error("in a folder that cannot be listed")
			}
		})
	}
}

// syncLog remembers which directories were synced.
type syncLog struct {
	atomicfile.FS
	dirs []string
}

func (l *syncLog) SyncDir(name string) error {
	l.dirs = append(l.dirs, filepath.Base(name))
	return l.FS.SyncDir(name)
}

// The new names of files that were moved are durable before the old ones are gone.
func TestQuarantineSyncs(t *testing.T) {
	dir := withFiles(t)
	var files []string
	for _, folder := range []string{"b", "a", "b"} {
		sessiontest.MustNoErr(t, os.MkdirAll(filepath.Join(dir, folder), 0o777))
		name := filepath.Join(dir, folder, fmt.Sprint("file", len(files)))
		sessiontest.MustNoErr(t, os.WriteFile(name, nil, 0o666))
		files = append(files, name)
	}
	log := &syncLog{FS: atomicfile.OrOS(nil)}
	to, err := MoveAside(log, dir, "step", files, time.Now())
	sessiontest.MustNoErr(t, err)
	if got := log.dirs[len(log.dirs)-3:]; !cmp.Equal(got, []string{filepath.Base(to), "a", "b"}) {
		t.Errorf("synced: %v", log.dirs)
	}
}

// Every operation of a move aside, or back, that fails is reported, and no file is lost: all are
// moved, or none. A move back that has failed is finished by the next.
func TestQuarantineEveryOperationFails(t *testing.T) {
	for _, back := range []bool{false, true} {
		for n := 1; ; n++ {
			dir := sessiontest.MemoryDir(t)
			var files []string
			for _, folder := range []string{"a", "b"} {
				files = append(files, filepath.Join(dir, folder, "same"))
				sessiontest.MustNoErr(t, os.Mkdir(filepath.Join(dir, folder), 0o777))
				sessiontest.MustNoErr(t, os.WriteFile(files[len(files)-1], []byte(folder), 0o666))
			}
			files = append(files, filepath.Join(dir, "b")) // with what is left in it
			there := func() (n int) {
				for _, name := range files {
					if _, err := os.Stat(name); err == nil {
						n++
					}
				}
				return n
			}
			fsys := faultfs.New(n)
			var disk atomicfile.FS = fsys
			if back {
				disk = atomicfile.OrOS(nil)
			}
			to, err := MoveAside(disk, dir, "step", files, time.Now())
			if back {
				sessiontest.MustNoErr(t, err)
				err = MoveBack(fsys, to, files)
			}
			if got := there(); got != 0 && got != 3 {
				t.Errorf("back %v, %s fails: %d of 3 files are there", back, fsys.Failed(), got)
			}
			if fsys.Ops() < n {
				if sessiontest.MustNoErr(t, err); n < 6 {
					t.Errorf("back %v: %d operations", back, n)
				}
				break
			}
			if !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("back %v, %s fails: %v", back, fsys.Failed(), err)
			}
			if to != "" {
				sessiontest.MustNoErr(t, MoveBack(nil, to, files))
			}
			b, err := os.ReadFile(files[1])
			if err != nil || string(b) != "b" || there() != 3 {
				t.Errorf("back %v, %s failed: %d of 3 files are back, %q, %v", back, fsys.Failed(), there(), b, err)
			}
		}
	}
}

// TestUnlistedVariables has a session that cannot say which variables it has, as a server that
// does not answer: nothing is saved, restored or warm-started as if there were none.
func TestUnlistedVariables(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
	path := filepath.Join(t.TempDir(), "m")
	prefix := save(t, new(Saver), sess, path, 1)
	sess.FailList = errStore
	s := &Saver{AllowEmpty: true}
	_, saved := s.Save(t.Context(), sess, path, 2)
	_, planned := (&WarmStart{Checkpoint: prefix}).Plan(t.Context(), sess)
	for what, err := range map[string]error{
		"Save": saved, "Restore": s.Restore(t.Context(), sess, prefix), "Check": s.Check(t.Context(), sess), "WarmStart.Plan": planned,
	} {
		if !errors.Is(err, errStore) {
			t.Errorf("%s = %v", what, err)
		}
	}
}
