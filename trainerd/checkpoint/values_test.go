package checkpoint

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

var errStore = errors.New("store fails")

// tracked counts the changes of its variables.
type tracked struct {
	*sessiontest.Session
	changes uint64
	asked   []string
	err     error
}

func (s *tracked) Changes(names []string) (uint64, error) {
	s.asked = names
	return s.changes, s.err
}

// lazyStore holds its values until they are asked for.
type lazyStore struct {
	*sessiontest.Session
	freezeErr, tensorErr error
	panics               bool
	closed               int
}

type frozen struct {
	store  *lazyStore
	values []*ckptfmt.Tensor
}

func (s *lazyStore) Freeze(ctx context.Context, names []string) (session.LazySnapshot, error) {
	if s.freezeErr != nil {
		return nil, s.freezeErr
	}
	cut, err := s.Snapshot(ctx, names)
	if err != nil {
		return nil, err
	}
	return &frozen{s, cut.Tensors}, nil
}

func (f *frozen) Tensor(i int) (*ckptfmt.Tensor, error) {
	if f.store.panics {
		panic("a session's mistake")
	}
	return f.values[i], f.store.tensorErr
}
func (f *frozen) State() []ckptfmt.NamedTensor { return f.store.Session.State }
func (f *frozen) Close()                       { f.store.closed++ }

// adopter takes over the memory of what it is given.
type adopter struct {
	*sessiontest.Session
	adopted []ckptfmt.NamedTensor
}

func (s *adopter) Adopt(ctx context.Context, values []ckptfmt.NamedTensor) error {
	s.adopted = values
	return s.Restore(ctx, values)
}

// A session that takes over memory is given it, whole.
func TestRestoreAdopts(t *testing.T) {
	s := new(Saver)
	model := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1, 2)})
	prefix, err := s.Save(t.Context(), model, filepath.Join(t.TempDir(), "m"), 1)
	sessiontest.MustNoErr(t, err)
	sess := &adopter{Session: sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](0, 0)})}
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, prefix))
	if len(sess.adopted) != 1 || cmp.Diff(model.Get("v"), sess.Get("v")) != "" {
		t.Errorf("adopted %v, the variable is %v", sess.adopted, sess.Get("v"))
	}
}

// fewValues gives one value too few.
type fewValues struct{ *sessiontest.Session }

func (s fewValues) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	cut, err := s.Session.Snapshot(ctx, names)
	cut.Tensors = cut.Tensors[1:]
	return cut, err
}

// wrapped shows less than the store inside can do.
type wrapped struct {
	*sessiontest.Session
	inside session.VariableStore
}

func (w wrapped) Saved() session.VariableStore { return w.inside }

// Any change of a variable is seen, of a store that counts changes and of one that
// does not; and what is not known is not taken for unchanged.
func TestCompareValues(t *testing.T) {
	model := func() *sessiontest.Session {
		return sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1, 2), "w": sessiontest.Vector[float32](3), "s": sessiontest.Vector("ab", "c"), "n": ckptfmt.Scalar(int64(0)),
			"m": {DType: 1, Shape: []int64{1, 2}, Data: make([]byte, 8)}})
	}
	changes := map[string]func(s *sessiontest.Session){
		"a value": func(s *sessiontest.Session) { s.Set("v", sessiontest.Vector[float32](1, 3)) },
		"a shape": func(s *sessiontest.Session) {
			s.Set("v", &ckptfmt.Tensor{DType: s.Get("v").DType, Shape: []int64{2, 1}, Data: s.Get("v").Data})
		},
		"dimensions exchanged": func(s *sessiontest.Session) {
			s.Set("m", &ckptfmt.Tensor{DType: s.Get("m").DType, Shape: []int64{2, 1}, Data: s.Get("m").Data})
		},
		"a rank": func(s *sessiontest.Session) { s.Set("w", ckptfmt.Scalar[float32](3)) },
		"a rank, to no elements": func(s *sessiontest.Session) {
			s.Set("n", &ckptfmt.Tensor{DType: s.Get("n").DType, Shape: []int64{0}})
		},
		"a type": func(s *sessiontest.Session) {
			s.Set("w", &ckptfmt.Tensor{DType: 3, Shape: []int64{1}, Data: s.Get("w").Data})
		},
		"where strings end": func(s *sessiontest.Session) { s.Set("s", sessiontest.Vector("a", "bc")) },
		"a string":          func(s *sessiontest.Session) { s.Set("s", sessiontest.Vector("ab", "d")) },
		"two exchanged": func(s *sessiontest.Session) {
			v := sessiontest.Vector[float32](3)
			s.Set("w", sessiontest.Vector[float32](1, 2))
			s.Set("v", v)
		},
	}
	for what, change := range changes {
		s := model()
		cut, err := new(Saver).Snapshot(t.Context(), s, "")
		sessiontest.MustNoErr(t, err)
		values := cut.Values()
		if got := values.Compare(t.Context()); got != Unchanged {
			t.Errorf("before %s changes: %v", what, got)
		}
		change(s)
		if got := values.Compare(t.Context()); got != Changed {
			t.Errorf("after %s has changed: %v", what, got)
		}
	}
	s := model()
	cut, err := new(Saver).Snapshot(t.Context(), s, "")
	sessiontest.MustNoErr(t, err)
	values := cut.Values()
	s.FailSnapshot = errStore
	if got := values.Compare(t.Context()); got != Unknown {
		t.Errorf("of a store that fails: %v", got)
	}
	s.FailSnapshot = nil
	values.store = fewValues{s}
	if got := values.Compare(t.Context()); got != Unknown {
		t.Errorf("of a store that gives too few values: %v", got)
	}
	if got := (*Values)(nil).Compare(t.Context()); got != Unknown {
		t.Errorf("of nothing: %v", got)
	}
	if got := new(Saver).PresentValues(t.Context(), s).Compare(t.Context()); got != Unknown {
		t.Errorf("of a store that does not count, without a cut: %v", got)
	}
}

func TestTrackedValues(t *testing.T) {
	s := &tracked{Session: sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)}), changes: 5}
	present := new(Saver).PresentValues(t.Context(), s)
	cut, err := new(Saver).Snapshot(t.Context(), s, "")
	sessiontest.MustNoErr(t, err)
	for _, values := range []*Values{present, cut.Values()} {
		s.changes, s.err = 5, nil
		if got := values.Compare(t.Context()); got != Unchanged || !values.Tracks() {
			t.Errorf("the same count: %v, tracks %v", got, values.Tracks())
		}
		if !slices.Equal(s.asked, []string{"v"}) {
			t.Errorf("asked for changes of %q", s.asked)
		}
		if s.changes = 6; values.Compare(t.Context()) != Changed {
			t.Error("another count is no change")
		}
		if s.err = errStore; values.Compare(t.Context()) != Unknown {
			t.Error("no count is known")
		}
	}
	if new(Saver).PresentValues(t.Context(), s).Tracks() {
		t.Error("a store that has no count tracks changes")
	}
	if new(Saver).PresentValues(t.Context(), sessiontest.OpSession{Session: s}) != nil || (&Saver{Variables: VariableList("x")}).PresentValues(t.Context(), s) != nil {
		t.Error("values of a session that has none to give")
	}
}

// What was restored is known to be unchanged, until it changes; a restore that
// fails leaves nothing known.
func TestRestoredValues(t *testing.T) {
	s, sess := new(Saver), twoVariables(1)
	if s.RestoredValues() != nil {
		t.Error("values before a restore")
	}
	prefix := save(t, s, sess, filepath.Join(t.TempDir(), "m"), 1)
	sess.State = []ckptfmt.NamedTensor{{Name: session.StatePrefix + "x", Tensor: sessiontest.Vector[uint64](7)}}
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, prefix))
	values := s.RestoredValues()
	if got := values.Compare(t.Context()); got != Unchanged {
		t.Errorf("after a restore: %v", got)
	}
	sess.Set("v", sessiontest.Vector[float32](2))
	if got := values.Compare(t.Context()); got != Changed {
		t.Errorf("after a change: %v", got)
	}
	if err := s.Restore(t.Context(), sess, prefix+"0"); err == nil || s.RestoredValues() != nil {
		t.Errorf("after a restore that failed (%v): %v", err, s.RestoredValues())
	}
}

// A store that can wait is asked for each value when it is written, and let go of in
// any case.
func TestLazySnapshot(t *testing.T) {
	state := []ckptfmt.NamedTensor{{Name: session.StatePrefix + "x", Tensor: sessiontest.Vector[uint64](7)}}
	model := func() *lazyStore {
		s := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"b": sessiontest.Vector[float32](1), "a": sessiontest.Vector[float32](2, 3), "global_step": ckptfmt.Scalar(int64(9))})
		s.State = state
		return &lazyStore{Session: s}
	}
	only := &Saver{Variables: map[string]string{"second": "a", "first": "b"}}
	s := model()
	cut, err := only.Snapshot(t.Context(), wrapped{s.Session, s}, "global_step:0")
	sessiontest.MustNoErr(t, err)
	if cut.Step != 9 || cut.BySession() || cut.Values().Compare(t.Context()) != Unknown {
		t.Errorf("cut %+v", cut)
	}
	if need := only.need(cut); need < spaceForRest+3*spacePerTensor+12 || need > spaceForRest+3*spacePerTensor+20 {
		t.Errorf("needs %d bytes", need)
	}
	prefix, err := only.Write(t.Context(), cut, filepath.Join(t.TempDir(), "m"), cut.Step)
	sessiontest.MustNoErr(t, err)
	if s.closed != 1 {
		t.Errorf("closed %d times", s.closed)
	}
	if diff := cmp.Diff(keys(t, prefix), []string{"_trainerd/x", "first", "second"}); diff != "" {
		t.Errorf("keys (-got +want):\n%s", diff)
	}
	other := model()
	other.Set("a", sessiontest.Vector[float32](0, 0))
	sessiontest.MustNoErr(t, only.Restore(t.Context(), other, prefix))
	if diff := cmp.Diff(other.Get("a"), s.Get("a")); diff != "" {
		t.Errorf("a (-got +want):\n%s", diff)
	}

	s = model()
	s.freezeErr = errStore
	if _, err := only.Snapshot(t.Context(), s, ""); !errors.Is(err, errStore) {
		t.Errorf("freeze fails: %v", err)
	}
	s = model()
	s.tensorErr = errStore
	if _, err := only.Snapshot(t.Context(), s, "global_step"); !errors.Is(err, errStore) || s.closed != 1 {
		t.Errorf("the step fails: %v, closed %d times", err, s.closed)
	}
	cut, err = only.Snapshot(t.Context(), s, "")
	sessiontest.MustNoErr(t, err)
	if cut.Step != session.NoStep {
		t.Errorf("step %d of none", cut.Step)
	}
	if _, err := only.Write(t.Context(), cut, filepath.Join(t.TempDir(), "m"), 1); !errors.Is(err, errStore) || s.closed != 2 {
		t.Errorf("a value fails: %v, closed %d times", err, s.closed)
	}
	s = model()
	s.panics = true
	func() {
		defer func() {
			if recover() == nil || s.closed != 1 {
				t.Errorf("after a panic closed %d times", s.closed)
			}
		}()
		only.Snapshot(t.Context(), s, "global_step")
	}()
	if _, err := only.Snapshot(t.Context(), model(), "a"); err == nil {
		t.Error("a vector is a step")
	}
	s = model()
	cut, err = only.Snapshot(t.Context(), s, "")
	sessiontest.MustNoErr(t, err)
	cut.Close()
	cut.Close()
	if s.closed != 1 {
		t.Errorf("closed %d times", s.closed)
	}
}

// A copied cut has the step, and the values as they were.
func TestSnapshotOfCopies(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1), "n": ckptfmt.Scalar(int64(4))})
	cut, err := (&Saver{Variables: VariableList("v")}).Snapshot(t.Context(), sess, "n")
	sessiontest.MustNoErr(t, err)
	if cut.Step != 4 || len(cut.tensors) != 1 || cut.values.Compare(t.Context()) != Unknown || cut.Values().Compare(t.Context()) != Unchanged {
		t.Errorf("cut %+v", cut)
	}
	if _, err := new(Saver).Snapshot(t.Context(), fewValues{sess}, ""); err == nil {
		t.Error("a cut with a value too few")
	}
	if _, err := new(Saver).Snapshot(t.Context(), sess, "x"); err == nil {
		t.Error("a cut without its step")
	}
	if _, err := (&Saver{Variables: VariableList("x")}).Snapshot(t.Context(), sess, ""); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a cut of no such variable: %v", err)
	}
	_, err = (&Saver{AllowEmpty: true}).Snapshot(t.Context(), sessiontest.SessionOf(nil), "")
	sessiontest.MustNoErr(t, err)
	stateful := sessiontest.SessionOf(nil)
	stateful.State = []ckptfmt.NamedTensor{{Name: session.StatePrefix + "x", Tensor: sessiontest.Vector[uint64](7)}}
	empty, err := (&Saver{AllowEmpty: true}).Snapshot(t.Context(), stateful, "")
	sessiontest.MustNoErr(t, err)
	if empty.BySession() || len(empty.tensors) != 0 {
		t.Errorf("an empty cut: %+v", empty)
	}
	if _, err := new(Saver).Snapshot(t.Context(), sessiontest.OpSession{Session: sess}, "x"); err == nil {
		t.Error("a cut of a session that saves itself, without its step")
	}
}
