package variables

import (
	"bytes"
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// frozenModel has two variables; the second is larger than a piece of a copy.
func frozenModel(t *testing.T) (v *Variables, a []float32, b []float64) {
	t.Helper()
	v, a, b = new(Variables), []float32{1, 2}, make([]float64, copyPiece/8*2+3)
	for i := range b {
		b[i] = float64(i)
	}
	sessiontest.MustNoErr(t, v.Float32("a", a))
	sessiontest.MustNoErr(t, v.Float64("b", b))
	return v, a, b
}

// A lazy snapshot gives the values of its moment, whatever steps change
// afterwards, declared or not.
func TestFreezeHoldsTheMoment(t *testing.T) {
	for name, step := range map[string]func(v *Variables, f func() error) (int64, error){
		"declared":   func(v *Variables, f func() error) (int64, error) { return v.StepOn([]string{"a", "b"}, f) },
		"undeclared": (*Variables).Step,
	} {
		t.Run(name, func(t *testing.T) {
			v, a, b := frozenModel(t)
			want, err := v.Snapshot(t.Context(), []string{"a", "b", "global_step"})
			sessiontest.MustNoErr(t, err)
			f, err := v.Freeze(t.Context(), []string{"a", "b", "global_step"})
			sessiontest.MustNoErr(t, err)
			defer f.Close()
			_, err = step(v, func() error { a[0], b[0], b[len(b)-1] = -1, -1, -1; return nil })
			sessiontest.MustNoErr(t, err)
			for i := range want.Tensors {
				got, err := f.Tensor(i)
				sessiontest.MustNoErr(t, err)
				if !bytes.Equal(got.Data, want.Tensors[i].Data) {
					t.Errorf("tensor %d is not of the moment", i)
				}
			}
		})
	}
}

// What a step does not name is not copied for it.
func TestStepOnCopiesOnlyWhatItNames(t *testing.T) {
	v, a, _ := frozenModel(t)
	f, err := v.Freeze(t.Context(), []string{"a", "b"})
	sessiontest.MustNoErr(t, err)
	_, err = v.StepOn([]string{"a", "no such"}, func() error { a[0] = 7; return nil })
	sessiontest.MustNoErr(t, err)
	frozen := f.(*frozenVariables)
	if frozen.copies[0] == nil || frozen.copies[1] != nil {
		t.Errorf("copies %v; want one of a alone", frozen.copies)
	}
	second, err := v.Freeze(t.Context(), []string{"a"}) // while the first is open
	sessiontest.MustNoErr(t, err)
	if got, err := second.Tensor(0); err != nil || !cmp.Equal(got.Data, sessiontest.Vector[float32](7, 2).Data) {
		t.Errorf("second freeze has %v, %v", got, err)
	}
	second.Close()
	f.Close()
	if v.frozen != nil {
		t.Error("the freeze is not closed")
	}
}

// Steps run during the writing of a checkpoint, and it still is of one moment.
func TestFreezeBesideSteps(t *testing.T) {
	v, a, b := frozenModel(t)
	for i := range b {
		b[i] = 0
	}
	a[0] = 0
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			v.StepOn([]string{"a", "b"}, func() error {
				a[0]++
				b[0]++
				b[len(b)-1]++
				return nil
			})
		}
	})
	saver, dir := new(checkpoint.Saver), sessiontest.MemoryDir(t)
	for n := range int64(10) {
		cut, err := saver.Snapshot(t.Context(), v, session.DefaultGlobalStep)
		sessiontest.MustNoErr(t, err)
		prefix, err := saver.Write(t.Context(), cut, filepath.Join(dir, "m"), n)
		sessiontest.MustNoErr(t, err)
		r, err := ckptfmt.Open(prefix, nil)
		sessiontest.MustNoErr(t, err)
		ta, err := r.Lookup("a")
		sessiontest.MustNoErr(t, err)
		tb, err := r.Lookup("b")
		sessiontest.MustNoErr(t, err)
		step, err := r.Lookup("global_step")
		sessiontest.MustNoErr(t, err)
		r.Close()
		av, _ := ckptfmt.Values[float32](ta)
		bv, _ := ckptfmt.Values[float64](tb)
		s, _ := session.ScalarInt(step)
		if int64(av[0]) != s || int64(bv[0]) != s || int64(bv[len(bv)-1]) != s {
			t.Fatalf("step %d has a %v, b %v and %v", s, av[0], bv[0], bv[len(bv)-1])
		}
	}
	close(stop)
	wg.Wait()
}

// wrapped is a session around another one, as the training of a Supervisor sees it.
type wrapped struct{ session.VariableStore }

func (w wrapped) Saved() session.VariableStore { return w.VariableStore }

var _ session.Wrapper = wrapped{}

// A training that saves by itself, through the session that it was given, is
// not held up for a copy either.
func TestFreezeOfWrappedSession(t *testing.T) {
	v, _, _ := frozenModel(t)
	cut, err := new(checkpoint.Saver).Snapshot(t.Context(), wrapped{v}, session.DefaultGlobalStep)
	sessiontest.MustNoErr(t, err)
	if v.frozen == nil {
		t.Error("all was copied at the cut")
	}
	cut.Close()
	if v.frozen != nil {
		t.Error("the freeze is not closed")
	}
}

// A variable that counts the steps under a name of its own is in the snapshot
// twice, as a value and as the step.
func TestFreezeOfOwnCounter(t *testing.T) {
	v, n := new(Variables), []int64{5}
	sessiontest.MustNoErr(t, v.Int64("n", n))
	cut, err := (&checkpoint.Saver{}).Snapshot(t.Context(), v, "n")
	sessiontest.MustNoErr(t, err)
	defer cut.Close()
	if cut.Step != 5 {
		t.Errorf("step %d; want 5", cut.Step)
	}
	_, err = v.Freeze(context.Background(), []string{"none"})
	if err == nil {
		t.Error("a name that is not registered can be frozen")
	}
}
