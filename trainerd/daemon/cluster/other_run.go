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

// Servers have one variable per name, which all runs share: two runs that use the same servers at
// the same time would train one model, and save it as two. So a chief puts its model there only
// once another run's model has given no sign of life, and never saves a model that is not its own.
const (
	otherIdle = 10 * time.Second // without a step or a sign: the other run has ended, or was killed
	otherPoll = time.Second
	// idleChecks is how many checks show that. A check of frozen servers takes long, and this process
	// may be frozen itself, so that the other run may have been frozen for as long.
	idleChecks = int(otherIdle / otherPoll)
	// longRest is how long a chief may have begun no call before it looks whose model is
	// there: it was paused, or frozen, perhaps in a call.
	longRest = otherIdle / 2
)

// otherRunState is what a check shows of another run. The zero otherRunState means that there is none.
type otherRunState struct {
	tag        string
	step, life int64
}

// awaitOther waits while another run trains its model on the servers, or begins to.
func (t *Task) awaitOther(ctx context.Context, sess session.Session) error {
	defer t.ReportWait("")
	p := t.newPatience()
	var last otherRunState
	said, first := false, true
	for idle := 0; ; idle++ {
		now, err := t.checkOther(ctx, sess)
		switch {
		case err != nil:
			return err
		case now == (otherRunState{}) && (!t.awaited || idle >= idleChecks): // else it may have lost its servers, and comes back
			t.awaited = false
			return nil
		case !first && now != last && now != (otherRunState{}):
			idle, t.awaited = 0, true
			t.reportOther(now, &said, p.limit)
		case idle >= idleChecks:
			t.awaited = false
			t.log.Warn("the servers have the model of another run, which has made no step lately; it is replaced", "its_step", last.step, "watched", otherIdle)
			return nil
		}
		last, first = now, false
		if _, over := p.remaining(); over && said {
			return &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED,
				Message: fmt.Sprintf("another run trains its model on the servers, after %v still; give each run servers of its own, or set cluster.patience_secs", p.limit)}
		}
		if !coord.Sleep(ctx, otherPoll) {
			return context.Cause(ctx)
		}
	}
}

// reportOther reports for which run this one waits; the log has it once.
func (t *Task) reportOther(other otherRunState, said *bool, limit time.Duration) {
	t.ReportWait(fmt.Sprintf("another run, which trains its model on the same servers and is at step %d", other.step))
	if !*said {
		t.log.Warn("waiting for another run that trains its model on the same servers; give each run servers of its own", "its_step", other.step, "patience", limit)
	}
	*said = true
}

// checkOther reads whose model the servers have, or are to get.
func (t *Task) checkOther(ctx context.Context, sess session.Session) (seen otherRunState, err error) {
	if seen.tag, err = readTag(ctx, sess); err != nil || seen.tag == "" {
		return otherRunState{}, err
	}
	own, err := t.readID()
	if err != nil || own != "" && strings.HasPrefix(seen.tag, claimMark+own) { // before it was killed
		return otherRunState{}, err
	}
	if seen.life, err = readLife(ctx, sess); err != nil {
		return otherRunState{}, err
	}
	// It is 0 for a model that is not complete, or not like this run's; what else is wrong the next look says.
	seen.step, _ = t.program.ReadStep(ctx, sess)
	return seen, nil
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
	id     atomic.Value // of the run, a string with which the tag begins; "" or none while the model is not there
	taken  atomic.Bool  // another's model is there: the session is of no use
	called atomic.Int64 // when the last call began, by the clock
	claim  string       // the tag while the model is being made, "" for none
	life   life
}

// own records that the model is there, or, for "", that it is not.
func (w *watch) own(id string) {
	if w != nil {
		w.owner.id.Store(id)
	}
}

func (w *watch) ownID() string {
	id, _ := w.owner.id.Load().(string)
	return id
}

// checkModel is CheckModel. Once the model is another's, all calls of the session fail.
func (w *watch) checkModel(ctx context.Context) error {
	if w == nil || w.ownID() == "" {
		return nil
	}
	if w.owner.taken.Load() {
		return ErrReplaced
	}
	tag, err := readTag(ctx, w.sess)
	if err != nil || strings.HasPrefix(tag, w.ownID()) { // which is "" if the model was given up meanwhile
		return err
	}
	if !w.owner.taken.Swap(true) {
		w.log.Error("another run has put its model on the servers, in place of this run's; the steps since the last checkpoint are lost; give each run servers of its own")
	}
	return ErrReplaced
}

// checkRested is checkModel for a call that begins long after the last one has: meanwhile
// another chief may have taken this one's run for ended. Until the model is known to be this
// run's, calls that begin at the same time look, too.
func (w *watch) checkRested(ctx context.Context) error {
	now := time.Now().UnixNano()
	rest := now - w.owner.called.Load()
	if rest < 0 || rest >= int64(longRest) || w.owner.taken.Load() {
		if err := w.checkModel(ctx); err != nil {
			return err
		}
	}
	w.owner.called.Store(now)
	return nil
}
