package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Servers have one variable of a name, whoever made it: two runs that use the same servers
// at a time would train one model, and save it as two. So a chief puts its model there only
// once that of another run has stood still, and saves none that is not its own.
const (
	otherIdle = 10 * time.Second // without a step: the other run has ended, or was killed
	otherPoll = time.Second
	// longRest is how long a chief may have begun no call before it looks whose model is
	// there: it was paused, or frozen, perhaps in a call.
	longRest = otherIdle / 2
)

// awaitOther waits while another run trains its model on the servers.
func (t *Task) awaitOther(ctx context.Context, sess session.Session) error {
	defer t.ReportWait("")
	began, said := time.Now(), time.Time{}
	patience := t.config.Cluster.PatienceSecs.Duration()
	last, moved := int64(session.NoStep), time.Now()
	for time.Since(moved) < otherIdle {
		tag, err := readTag(ctx, sess)
		if tag == "" || err != nil {
			return err
		}
		step, err := t.program.ReadStep(ctx, sess)
		switch {
		case IsLost(err) || ctx.Err() != nil:
			return err
		case err != nil:
			return nil // it is not complete, or not alike
		}
		if step != last && last != session.NoStep {
			moved = time.Now()
			reason := fmt.Sprintf("another run, which trains its model on the same servers and is at step %d", step)
			t.ReportWait(reason)
			if time.Since(said) >= ReportEvery {
				said = time.Now()
				t.log.Warn("waiting for another run that trains its model on the same servers; give each run servers of its own", "its_step", step, "patience", patience)
			}
		}
		if last = step; patience > 0 && time.Since(began) > patience {
			return &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED,
				Message: fmt.Sprintf("another run trains its model on the servers, after %v still; give each run servers of its own, or set cluster.patience_secs", patience)}
		}
		if !coord.Sleep(ctx, otherPoll) {
			return context.Cause(ctx)
		}
	}
	t.log.Warn("the servers have the model of another run, which has made no step lately; it is replaced", "its_step", last, "watched", otherIdle)
	return nil
}

// CheckModel returns [ErrReplaced] if the servers no longer have the model of this run, as a
// chief knows it.
func (t *Task) CheckModel(ctx context.Context, sess session.Session) error {
	return watchOf(sess).checkModel(ctx)
}

// saveOp returns the op by which servers save the model, "" for none.
func (t *Task) saveOp() string {
	def, err := (graph.Collections{Meta: t.program.Meta}).SaverDef()
	if err != nil {
		return "" // a save says so
	}
	return def.GetSaveTensorName()
}

// owner is how a session of a chief knows that the model is its run's.
type owner struct {
	id     atomic.Pointer[string] // of the run, with which the tag begins; nil while the model is not there
	taken  atomic.Bool            // another's model is there: the session is of no use
	called atomic.Int64           // when the last call began, by the clock
}

// own notes that the model is there, or for "" that it is not.
func (w *watch) own(id string) {
	if w == nil {
		return
	}
	if id == "" {
		w.owner.id.Store(nil)
		return
	}
	w.owner.id.Store(&id)
}

// checkModel is CheckModel. Once the model is another's, all calls of the session fail.
func (w *watch) checkModel(ctx context.Context) error {
	if w == nil || w.owner.id.Load() == nil {
		return nil
	}
	if w.owner.taken.Load() {
		return ErrReplaced
	}
	tag, err := readTag(ctx, w.sess)
	if id := w.owner.id.Load(); err != nil || id == nil || strings.HasPrefix(tag, *id) {
		return err
	}
	if !w.owner.taken.Swap(true) {
		w.log.Error("another run has put its model on the servers, in place of this run's; the steps since the last checkpoint are lost; give each run servers of its own")
	}
	return ErrReplaced
}

// checkRested is checkModel for a call that begins long after the last one has: meanwhile
// another chief may have taken this one's run for ended.
func (w *watch) checkRested(ctx context.Context) error {
	now := time.Now().UnixNano()
	last := w.owner.called.Swap(now)
	if rest := now - last; last != 0 && (rest < 0 || rest >= int64(longRest)) {
		return w.checkModel(ctx)
	}
	if w.owner.taken.Load() {
		return ErrReplaced
	}
	return nil
}
