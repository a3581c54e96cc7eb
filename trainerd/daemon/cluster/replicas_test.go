package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/session"
)

// racing is a session whose model advances right after the local step was set, so
// many times.
type racing struct {
	session.Session
	step, local int64
	advances    int
}

func (s *racing) Run(_ context.Context, _ map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if slices.Contains(targets, "local_init") {
		s.local = s.step
		if s.advances > 0 {
			s.advances--
			s.step++
		}
		return nil, nil
	}
	return []*ckptfmt.Tensor{ckptfmt.Scalar(s.step)}, nil
}

func TestJoin(t *testing.T) {
	for advances := range 4 {
		r := &Replicas{Task: NewTask(&config.Config{}, &program.Program{GlobalStep: "global_step:0"}, nil, nil), Sync: &model.Sync{LocalInit: "local_init"}}
		s := &racing{step: 4, advances: advances}
		step, err := r.Join(t.Context(), s)
		if err != nil || step != s.step || s.local != step {
			t.Errorf("a model that advances %d times: Join = %d, %v with the local step %d; the model is at step %d", advances, step, err, s.local, s.step)
		}
	}
}

// A replica that has waited in vain for a token before does so no longer for the next.
func TestWaitIsOverOnceTheModelHasAdvanced(t *testing.T) {
	r := &Replicas{Task: NewTask(&config.Config{}, &program.Program{GlobalStep: "global_step:0"}, nil, nil)}
	w := &wait{Replicas: r, sess: &racing{step: 5}, step: 4, next: time.Now().Add(time.Hour)}
	for look := 1; look <= 2*passedPolls; look++ {
		if err := w.poll(t.Context()); (err == errPassed) != (look >= passedPolls) {
			t.Errorf("look %d at a model that has advanced gives %v", look, err)
		}
	}
}

// evaluating is a session of a training whose chief evaluates, and gives signs until a
// time.
type evaluating struct {
	session.Session
	until time.Time
	sign  int64
}

func (s *evaluating) Run(_ context.Context, _ map[string]*ckptfmt.Tensor, fetches, _ []string) ([]*ckptfmt.Tensor, error) {
	switch {
	case slices.Contains(fetches, progressHas):
		return []*ckptfmt.Tensor{{Data: []byte{1}}}, nil
	case slices.Contains(fetches, progressRead):
		if time.Now().Before(s.until) {
			s.sign++
		}
		return []*ckptfmt.Tensor{int64s(8, 9, s.sign)}, nil
	}
	return []*ckptfmt.Tensor{ckptfmt.Scalar(int64(9))}, nil
}

// A chief that evaluates for longer than the patience is waited for, but not one that
// gives no sign any more.
func TestWaitForChiefThatEvaluates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &config.Config{Master: "grpc://worker1:2222"}
		c.Cluster.PatienceSecs = 600
		p := &program.Program{GlobalStep: "global_step:0", ApplyGrads: []string{"apply"}}
		r := &Replicas{Task: NewTask(c, p, slog.New(slog.DiscardHandler), nil)}
		begun := time.Now()
		w := r.newWait(&evaluating{until: begun.Add(time.Hour)}, 9)
		var err error
		for ; err == nil; time.Sleep(pollEvery) {
			err = w.poll(t.Context())
		}
		if waited := time.Since(begun); waited < 70*time.Minute-ReportEvery || waited > 70*time.Minute+ReportEvery {
			t.Errorf("it was waited for %v", waited)
		}
		if !errors.Is(err, session.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "worker 0 (its last step was 9)") {
			t.Errorf("error %v", err)
		}
	})
}

// leftover is a session on servers that have gradients of an earlier training. Taking
// them out counts steps; the first call that sets these right takes too long.
type leftover struct {
	session.Session
	gradients, counted int32
	slow               int
}

func (s *leftover) Run(ctx context.Context, _ map[string]*ckptfmt.Tensor, _, targets []string) ([]*ckptfmt.Tensor, error) {
	switch {
	case slices.Contains(targets, "discard"):
		s.gradients, s.counted = 0, s.counted+1
	case slices.Contains(targets, "chief_init"):
		if s.slow--; s.slow >= 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s.counted = 0
	}
	return []*ckptfmt.Tensor{int32s(s.gradients), int32s(0)}, nil
}

func int32s(v int32) *ckptfmt.Tensor {
	return &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT32, Shape: []int64{1}, Data: binary.LittleEndian.AppendUint32(nil, uint32(v))}
}

// Gradients that were taken out at an attempt that then failed have counted steps, too.
func TestResetThatFailsHalfway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Replicas{Task: NewTask(&config.Config{}, &program.Program{}, slog.New(slog.DiscardHandler), nil),
			Sync: &model.Sync{Left: "left", Tokens: "tokens", Discard: []string{"discard"}, ChiefInit: "chief_init"}}
		s := &leftover{gradients: 1, slow: 2}
		if err := r.reset(t.Context(), s, false); err != nil || s.gradients != 0 || s.counted != 0 {
			t.Errorf("reset: %v; %d gradients are left, %d steps counted", err, s.gradients, s.counted)
		}
	})
}
