package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// holder is a session that saves itself, and whose steps can be held until it has.
type holder struct {
	session.Session
	held, released int
	err            error
}

func (h *holder) HoldSteps(context.Context) (func(), error) {
	if h.err != nil {
		return nil, h.err
	}
	h.held++
	return func() { h.released++ }, nil
}

// A session that saves itself is held from the snapshot until that is closed, however
// often, and not at all if it cannot be, or its step cannot be read.
func TestSnapshotHoldsSteps(t *testing.T) {
	model := sessiontest.Counter()
	model.Set(session.DefaultGlobalStep, ckptfmt.Scalar(int64(3)))
	sess, err := model.NewOpSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{Session: sess}
	saver := &Saver{}
	cut, err := saver.Snapshot(t.Context(), h, session.DefaultGlobalStep)
	if err != nil || h.held != 1 || h.released != 0 || !cut.HoldsSteps() {
		t.Fatalf("held %d times, released %d times, %v", h.held, h.released, err)
	}
	for range 2 {
		cut.Close()
	}
	if h.released != 1 || cut.HoldsSteps() || cut.Held() <= 0 {
		t.Errorf("released %d times, held for %v", h.released, cut.Held())
	}
	if _, err := saver.Snapshot(t.Context(), h, "no_such_step"); err == nil || h.held != 2 || h.released != 2 {
		t.Errorf("without a step: %v; held %d times, released %d times", err, h.held, h.released)
	}
	h.err = errors.New("a step does not end")
	if _, err := saver.Snapshot(t.Context(), h, session.DefaultGlobalStep); !errors.Is(err, h.err) || h.held != 2 {
		t.Errorf("cannot be held: %v", err)
	}
}

// holdingStore is a holder that gives out its variables, and holds its steps while it copies them.
type holdingStore struct{ *holder }

func (s holdingStore) Variables(context.Context) ([]session.VariableInfo, error) { return nil, nil }

func (s holdingStore) Restore(context.Context, []ckptfmt.NamedTensor) error { return nil }

func (s holdingStore) Snapshot(ctx context.Context, _ []string) (*session.Snapshot, error) {
	if s.held > s.released {
		return nil, errors.New("waiting forever for the steps to be released")
	}
	return &session.Snapshot{}, nil
}

// The step of a store whose steps are held is read all the same, where the ops of the graph
// save more than variables.
func TestSnapshotOfHeldStore(t *testing.T) {
	model := sessiontest.Counter()
	model.Set(session.DefaultGlobalStep, ckptfmt.Scalar(int64(3)))
	sess, err := model.NewOpSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meta := savingGraph()
	find(meta, "read").Op = "LookupTableExportV2"
	h := holdingStore{&holder{Session: sess}}
	cut, err := (&Saver{MetaGraph: meta}).Snapshot(t.Context(), h, session.DefaultGlobalStep)
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Close()
	if cut.Step != 3 || !cut.HoldsSteps() || !cut.BySession() {
		t.Errorf("step %d, held %v, by the session %v", cut.Step, cut.HoldsSteps(), cut.BySession())
	}
}

// A snapshot whose folder is there does not make it again if it is deleted meanwhile.
func TestSaveWithoutFolder(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](7, 8)})
	saver := &Saver{}
	for _, exists := range []bool{false, true} {
		cut, err := saver.Snapshot(t.Context(), sess, "")
		if err != nil {
			t.Fatal(err)
		}
		cut.DirExists = exists
		prefix := filepath.Join(t.TempDir(), "gone", "model.ckpt")
		if _, err := saver.Write(t.Context(), cut, prefix, 1); errors.Is(err, fs.ErrNotExist) != exists || err != nil && !exists {
			t.Errorf("with DirExists %v: %v", exists, err)
		}
		cut.Close()
	}
}

// A warm start from a checkpoint in which a tensor lacks a part says so of the tensor.
func TestWarmStartFromIncompleteTensor(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	half := ckptfmt.TensorSlice{Start: []int64{0}, Length: []int64{1}}
	if err := errors.Join(w.AddSlice("v", []int64{2}, half, sessiontest.Vector[float32](1)), w.Finish()); err != nil {
		t.Fatal(err)
	}
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](7, 8)})
	start := WarmStart{Checkpoint: prefix}
	if _, err := start.Apply(t.Context(), sess); !errors.Is(err, ckptfmt.ErrSlices) || !strings.Contains(err.Error(), "v") {
		t.Errorf("error %v", err)
	}
	if v, err := ckptfmt.Values[float32](sess.Get("v")); err != nil || v[0] != 7 {
		t.Errorf("the variable became %v, %v", v, err)
	}
}
