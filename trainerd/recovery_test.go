package trainerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// trainedDir returns a logdir with the checkpoints 10, 20 and 30.
func trainedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 10)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 30)))
	return dir
}

func writeState(t *testing.T, dir, text string) {
	t.Helper()
	sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, "checkpoint"), []byte(text), 0o666))
}

func remove(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		for _, name := range sessiontest.Files(t, dir, p) {
			sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, name)))
		}
	}
}

func TestRestoreFallback(t *testing.T) {
	tests := []struct {
		name    string
		damage  func(t *testing.T, dir string)
		want    int64 // step that the run begins with
		wantErr string
		wantLog []string
		aside   bool
	}{
		{"sound", func(t *testing.T, dir string) {}, 30, "", []string{"restored"}, false},
		{"data damaged", func(t *testing.T, dir string) {
			sessiontest.FlipByte(t, filepath.Join(dir, "model.ckpt-30.data-00000-of-00001"))
		},
			20, "", []string{"level=ERROR", "model.ckpt-30.data-00000-of-00001", "moved damaged checkpoint aside", "model.ckpt-20"}, true},
		{"index damaged", func(t *testing.T, dir string) { sessiontest.FlipByte(t, filepath.Join(dir, "model.ckpt-30.index")) },
			20, "", []string{"level=ERROR", "model.ckpt-30.index"}, true},
		{"of a newer TensorFlow", func(t *testing.T, dir string) {
			newer := filepath.Join("..", "fixtures", "ckpt_v2", "damaged", "min_consumer_2", "model.ckpt.index")
			b, err := os.ReadFile(newer)
			sessiontest.MustNoErr(t, err)
			sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, "model.ckpt-30.index"), b, 0o666))
		}, 20, "", []string{"trying an older one", "a newer TensorFlow wrote it", "moved checkpoint of a newer release aside"}, true},
		{"two damaged", func(t *testing.T, dir string) {
			sessiontest.FlipByte(t, filepath.Join(dir, "model.ckpt-30.index"))
			sessiontest.FlipByte(t, filepath.Join(dir, "model.ckpt-20.index"))
		}, 10, "", []string{"model.ckpt-30.index", "model.ckpt-20.index"}, true},
		{"named file missing", func(t *testing.T, dir string) { remove(t, dir, "model.ckpt-30.*") },
			20, "", []string{"level=ERROR", "model.ckpt-30.index: no such file"}, false},
		{"data file missing", func(t *testing.T, dir string) { remove(t, dir, "model.ckpt-30.data*") }, 20, "", []string{"data-00000-of-00001", "file does not exist"}, true},
		{"all damaged", func(t *testing.T, dir string) {
			for _, name := range sessiontest.Files(t, dir, "*.index") {
				sessiontest.FlipByte(t, filepath.Join(dir, name))
			}
		}, 0, "no usable checkpoint", nil, false},
		{"all missing", func(t *testing.T, dir string) { remove(t, dir, "model.ckpt-*") }, 0, "no usable checkpoint", nil, false},
		{"SP12 no state file", func(t *testing.T, dir string) { remove(t, dir, "checkpoint") }, 30, "", []string{"model.ckpt-30"}, false},
		{"SP12 state file cannot be parsed", func(t *testing.T, dir string) { writeState(t, dir, "model_checkpoint_path: 30") }, 30, "", []string{"unreadable"}, false},
		{"SP12 state file empty", func(t *testing.T, dir string) { writeState(t, dir, "") }, 30, "", []string{"unreadable"}, false},
		{"no state file and newest damaged", func(t *testing.T, dir string) {
			remove(t, dir, "checkpoint")
			sessiontest.FlipByte(t, filepath.Join(dir, "model.ckpt-30.index"))
		}, 20, "", nil, true},
		{"CK12 edited by hand", func(t *testing.T, dir string) { writeState(t, dir, "model_checkpoint_path: \"model.ckpt-20\"\n") }, 20, "", nil, false},
		{"edited by hand, and that one damaged", func(t *testing.T, dir string) {
			writeState(t, dir, "model_checkpoint_path: \"model.ckpt-20\"\n")
			sessiontest.FlipByte(t, filepath.Join(dir, "model.ckpt-20.index"))
		}, 10, "", nil, true},
		{"edited by hand, nothing older", func(t *testing.T, dir string) {
			writeState(t, dir, "model_checkpoint_path: \"model.ckpt-5\"\n")
		}, 0, "newer than the one that checkpoint names, so not tried: model.ckpt-30", nil, false},
		{"newest is of no use, older listed is gone", func(t *testing.T, dir string) {
			sessiontest.FlipByte(t, filepath.Join(dir, "model.ckpt-30.index"))
			remove(t, dir, "model.ckpt-20.*")
		}, 10, "", nil, true},
		{"no checkpoints at all", func(t *testing.T, dir string) { remove(t, dir, "model.ckpt-*", "checkpoint") }, 0, "", nil, false},
		{"state file cannot be parsed and no checkpoints", func(t *testing.T, dir string) {
			remove(t, dir, "model.ckpt-*")
			writeState(t, dir, "}")
		}, 0, "", nil, false},
	}
	trained := trainedDir(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := sessiontest.CopyDir(t, trained)
			tt.damage(t, dir)
			before := sessiontest.Files(t, dir, "model.ckpt-*")
			log, lines := sessiontest.NewLog()
			m := sessiontest.Counter()
			sv := newSupervisor(m, dir, 1000)
			sv.Logger = log
			got := int64(-1)
			err := sv.Run(t.Context(), func(context.Context, session.Session) error {
				got, _ = session.ScalarInt(m.Get("global_step"))
				return nil
			})
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("Run = %v; want an error with %q", err, tt.wantErr)
				}
				if diff := cmp.Diff(sessiontest.Files(t, dir, "model.ckpt-*"), before, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("files changed (-got +want):\n%s", diff)
				}
				return
			}
			sessiontest.MustNoErr(t, err)
			if got != tt.want {
				t.Errorf("run begins with step %d; want %d", got, tt.want)
			}
			sessiontest.WantLog(t, lines, tt.wantLog...)
			if aside := sessiontest.Files(t, dir, "damaged/*/*.index"); (len(aside) > 0) != tt.aside {
				t.Errorf("moved aside: %v; want %v", aside, tt.aside)
			}
			if tt.want > 0 {
				latest, err := ckptdir.LatestCheckpoint(dir, nil)
				sessiontest.MustNoErr(t, err)
				if ckptdir.StepOf(latest) != tt.want {
					t.Errorf("state file names %s; want step %d", latest, tt.want)
				}
			}
		})
	}
}

func TestDifferentModelIsRefused(t *testing.T) {
	dir := trainedDir(t)
	before := sessiontest.Files(t, dir, "*")
	m := sessiontest.Counter()
	m.Vars["w"].Value = sessiontest.Vector[float32](0, 0)
	m.Vars["b"] = &sessiontest.Variable{Value: sessiontest.Vector[float32](0)}
	err := newSupervisor(m, dir, 0).Run(t.Context(), func(context.Context, session.Session) error { t.Error("train was called"); return nil })
	var mismatch *checkpoint.MismatchError
	if !errors.As(err, &mismatch) || len(mismatch.Differences) != 2 {
		t.Errorf("Run = %v; want a MismatchError over b and w", err)
	}
	if diff := cmp.Diff(sessiontest.Files(t, dir, "*"), before); diff != "" {
		t.Errorf("files changed (-got +want):\n%s", diff)
	}
}

// However a run was cut off, the next one starts from the last checkpoint that
// was announced, or a later one, and ends with what an undisturbed run has.
func TestKillAtEveryFile(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 5)
	sv.Saver = &checkpoint.Saver{MaxToKeep: 2}
	var announced []int64
	type moment struct {
		dir  string
		step int64
	}
	var moments []moment
	// What a kill leaves after each event: the directory as it is then.
	sv.OnSave = func(s SavedCheckpoint) {
		announced = append(announced, s.Step)
		moments = append(moments, moment{sessiontest.CopyDir(t, dir), s.Step})
	}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 23)))
	if len(moments) != 5 {
		t.Fatalf("%d saves; want 5", len(moments))
	}
	for _, k := range moments {
		resume(t, sessiontest.CopyDir(t, k.dir), k.step)
	}
	// A kill within a save: any of the files that it had not yet written are
	// not there, and temporary ones are.
	final := moments[4].dir
	for i, lost := range []string{"checkpoint", "model.ckpt-23.index", "model.ckpt-23.data-00000-of-00001"} {
		killed := sessiontest.CopyDir(t, final)
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(killed, lost+".tempstate123"), []byte("half"), 0o666))
		writeState(t, killed, "model_checkpoint_path: \"model.ckpt-20\"\nall_model_checkpoint_paths: \"model.ckpt-15\"\nall_model_checkpoint_paths: \"model.ckpt-20\"\n")
		before := time.Now().Add(-time.Minute) // as it is when a killed run left it
		sessiontest.MustNoErr(t, os.Chtimes(filepath.Join(killed, "checkpoint"), before, before))
		if i > 0 {
			remove(t, killed, "model.ckpt-23.index")
		}
		if i > 1 {
			remove(t, killed, "model.ckpt-23.data*")
		}
		resume(t, killed, 20)
		if left := sessiontest.Files(t, killed, "*.tempstate*"); len(left) > 0 {
			t.Errorf("temporary files left: %v", left)
		}
	}
}

// resume runs the rest of the training in a directory and checks its end.
func resume(t *testing.T, dir string, atLeast int64) {
	t.Helper()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 5)
	sv.Saver = &checkpoint.Saver{MaxToKeep: 2}
	begin := int64(-1)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		begin, _ = session.ScalarInt(m.Get("global_step"))
		return stepsTo(m, sv, 40)(ctx, s)
	}))
	if begin < atLeast {
		t.Errorf("resumed at %d; %d was announced", begin, atLeast)
	}
	if diff := cmp.Diff(m.Get("w").Data, ckptfmt.Scalar(float32(20)).Data); diff != "" {
		t.Errorf("w at the end (-got +want):\n%s", diff)
	}
	if got := sessiontest.Files(t, dir, "*.index"); len(got) != 2 {
		t.Errorf("checkpoints at the end: %v; want two", got)
	}
}

// A checkpoint that a killed run had finished but not yet listed goes with the
// rotation, so that many kills do not fill the disk.
func TestOrphanOfKilledRunIsAdopted(t *testing.T) {
	dir := trainedDir(t)
	orphan := saveStep(t, t.TempDir(), 33)
	later := time.Now().Add(time.Minute)
	for _, name := range []string{".index", ".data-00000-of-00001"} {
		to := filepath.Join(dir, "model.ckpt-33"+name)
		b, err := os.ReadFile(orphan + name)
		sessiontest.MustNoErr(t, err)
		sessiontest.MustNoErr(t, os.WriteFile(to, b, 0o666))
		sessiontest.MustNoErr(t, os.Chtimes(to, later, later))
	}
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 7)
	sv.Saver = &checkpoint.Saver{MaxToKeep: 3}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 42)))
	want := []string{"model.ckpt-30.index", "model.ckpt-35.index", "model.ckpt-42.index"}
	if diff := cmp.Diff(sessiontest.Files(t, dir, "*.index"), want); diff != "" {
		t.Errorf("checkpoints (-got +want):\n%s", diff)
	}
}

func TestLogdirErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	sessiontest.MustNoErr(t, os.WriteFile(file, nil, 0o666))
	for _, logdir := range []string{file, filepath.Join(file, "logdir"), "/proc/none"} {
		err := newSupervisor(sessiontest.Counter(), logdir, 0).Run(t.Context(), func(context.Context, session.Session) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "logdir") {
			t.Errorf("logdir %s: %v; want an error about the logdir", logdir, err)
		}
	}
}

func TestDamagedErrorText(t *testing.T) {
	dir := trainedDir(t)
	remove(t, dir, "model.ckpt-*")
	err := newSupervisor(sessiontest.Counter(), dir, 0).Run(t.Context(), func(context.Context, session.Session) error { return nil })
	if err == nil {
		t.Fatal("Run succeeds")
	}
	for _, want := range []string{"no usable checkpoint in " + dir, "model.ckpt-30: stat", "model.ckpt-10", fmt.Sprintf("let %s name another", filepath.Join(dir, "checkpoint"))} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error does not match the cause: %v", err)
	}
}

// A run continues from a checkpoint of the older format, and writes the newer one.
func TestResumeFromV1(t *testing.T) {
	for _, name := range []string{"saver_single", "saver_sharded"} {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.CopyDir(t, filepath.Join("..", "fixtures", "ckpt_v1", name))
			state, err := ckptdir.ReadState(dir, nil)
			sessiontest.MustNoErr(t, err)
			old, err := ckptfmt.Open(state.ModelCheckpointPath, nil)
			sessiontest.MustNoErr(t, err)
			defer old.Close()
			vars := make(map[string]*ckptfmt.Tensor)
			for info, err := range old.Tensors() {
				sessiontest.MustNoErr(t, err)
				size := dtype.Size(info.DType)
				for _, d := range info.Shape {
					size *= d
				}
				vars[info.Name] = &ckptfmt.Tensor{DType: info.DType, Shape: info.Shape, Data: make([]byte, size)}
			}
			m := sessiontest.NewModel(vars)
			sv := newSupervisor(m, dir, 10)
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error { return nil }))
			if got := sv.Prepared().Restored; got != state.ModelCheckpointPath {
				t.Errorf("restored %q; want %q", got, state.ModelCheckpointPath)
			}
			for name := range vars {
				want, err := old.Lookup(name)
				sessiontest.MustNoErr(t, err)
				if diff := cmp.Diff(m.Get(name).Data, want.Data); diff != "" {
					t.Errorf("%s (-got +want):\n%s", name, diff)
				}
			}
			if got := sessiontest.Files(t, dir, "model.ckpt.index"); len(got) != 1 {
				t.Error("no final checkpoint")
			}
		})
	}
}
