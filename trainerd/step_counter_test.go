package trainerd

import (
	"context"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// readSession calls f after the global step was read, which is 5.
type readSession struct {
	session.Session
	f func()
}

func (s readSession) Run(context.Context, map[string]*ckptfmt.Tensor, []string, []string) ([]*ckptfmt.Tensor, error) {
	defer s.f()
	return []*ckptfmt.Tensor{ckptfmt.Scalar(int64(5))}, nil
}

// A step that ends while the global step is read, as from a slow server, does not look like
// one that has not raised it.
func TestStepEndsWhileItIsRead(t *testing.T) {
	log, lines := sessiontest.NewLog()
	r := &run{plan: &plan{globalStep: "global_step:0"}}
	r.stepsDone.Store(5)
	c := &stepCounter{log: log, run: r}
	r.sess = readSession{f: func() {}}
	sessiontest.MustNoErr(t, c.tick(t.Context()))
	r.sess = readSession{f: func() { r.stepsDone.Store(6) }}
	sessiontest.MustNoErr(t, c.tick(t.Context()))
	if text := lines.String(); strings.Contains(text, "global step") {
		t.Errorf("a false alarm: %s", text)
	}
	sessiontest.MustNoErr(t, c.tick(t.Context()))
	sessiontest.WantLog(t, lines, "global step has not been increased")
}
