package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/session"
)

// How often a waiting replica checks the model, and for how long.
const (
	pollEvery   = time.Second
	pollTimeout = 10 * time.Second
)

// passedPolls is at how many looks in a row the model must have advanced before
// a replica believes that no token will come: one may be on its way from a busy
// server.
const passedPolls = 4

// stepGrace is how long a step may take in all once a stop was requested.
const stepGrace = 3 * time.Second

// Replicas is the part of a job in a training whose workers wait for each other
// in every step. A nil replicas does nothing.
type Replicas struct {
	*Task
	*model.Sync
	first, made int64         // see batch
	update      chan struct{} // closed when updates have ended; nil for a worker
	failed      error         // why they have ended
}

// NewReplicas returns the part of a task in such a training, nil in one whose
// workers do not wait for each other.
func NewReplicas(t *Task) *Replicas {
	if t.program.Sync == nil {
		return nil
	}
	return &Replicas{Task: t, Sync: t.program.Sync}
}

// reset removes from the servers what a finished training has left: its gradients would go into the
// first update, and its tokens name its own steps.
func (r *Replicas) reset(ctx context.Context, sess session.Session, adopted bool) error {
	if r == nil || adopted {
		return nil
	}
	patience := r.newPatience()
	for {
		// A worker of that training may take what was counted before it is removed here, and then
		// this call waits for more.
		bounded, cancel := context.WithTimeout(ctx, pollTimeout)
		err := r.discard(bounded, sess)
		cancel()
		_, over := patience.remaining()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || !slow(err) || over:
			return fmt.Errorf("clearing the state of an earlier training on the servers: %w", err)
		}
		r.log.Warn("clearing the state of an earlier training on the servers takes long; trying again", "err", err)
	}
}

func (r *Replicas) discard(ctx context.Context, sess session.Session) error {
	out, err := sess.Run(ctx, nil, []string{r.Left, r.Tokens}, nil)
	if err != nil {
		return err
	}
	counts, err := ckptfmt.Values[int32](out[0])
	if err != nil {
		return err
	}
	var targets []string
	for i, count := range counts {
		if count > 0 && i < len(r.Discard) {
			targets = append(targets, r.Discard[i])
		}
	}
	feeds := make(program.Feed)
	if tokens, err := ckptfmt.Values[int32](out[1]); err != nil {
		return err
	} else if len(tokens) == 1 && tokens[0] > 0 {
		feeds[r.TokenCount] = out[1]
		targets = append(targets, r.Drain)
	}
	if len(targets) > 0 {
		if _, err := sess.Run(ctx, feeds, nil, targets); err != nil {
			return err
		}
	}
	// Taking gradients has counted steps, perhaps at an attempt that then failed:
	// gradients for an earlier step than was counted are dropped.
	_, err = sess.Run(ctx, nil, nil, []string{r.ChiefInit})
	return err
}

// Start begins the updates, which are the chief's to make. The caller calls
// stop before the session is used no more.
func (r *Replicas) Start(ctx context.Context, sess session.Session, step int64, adopted bool) (stop func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	r.first, r.made, r.update, r.failed = step, 0, nil, nil
	if !r.config.Supervisor.IsChief {
		return func() {}, nil
	}
	if err := r.putTokens(ctx, sess, adopted); err != nil {
		return nil, fmt.Errorf("putting the first tokens: %w", err)
	}
	// A stop lets the replicas end their step: updates continue until the training
	// has returned.
	updating, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	r.update = ended
	raw := ungated(sess)
	go func() {
		defer close(ended)
		for updating.Err() == nil && r.failed == nil {
			_, r.failed = raw.Run(updating, nil, nil, []string{r.Update})
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// putTokens puts in the tokens that the replicas need for a first update when each of them begins
// with a gradient. It is not known what a lost session of the chief has put in or taken out, and a
// replica that was waiting may still take a token for a gradient that it contributes again: an
// adopted model needs tokens for all of these, too. One token too many costs a dropped gradient,
// one too few stops the training forever.
func (r *Replicas) putTokens(ctx context.Context, sess session.Session, adopted bool) error {
	if !adopted {
		_, err := sess.Run(ctx, nil, nil, []string{r.InitTokens})
		return err
	}
	if r.Aggregate <= r.Total {
		return nil // a token for each replica comes with the update
	}
	out, err := sess.Run(ctx, nil, []string{r.Left, r.Tokens}, nil)
	if err != nil {
		return err
	}
	given, err := ckptfmt.Values[int32](out[0])
	if err != nil {
		return err
	}
	tokens, err := session.ScalarInt(out[1])
	if err != nil {
		return err
	}
	others := int64(r.Total - 1)
	lacking := int64(r.Aggregate-r.Total) + others - int64(slices.Min(given)) - tokens
	if lacking <= 0 {
		return nil
	}
	_, err = sess.Run(ctx, program.Feed{r.TokenCount: ckptfmt.Scalar(int32(lacking))}, nil, []string{r.PutTokens})
	return err
}

// ungated returns the session inside those that hold a copy of the variables
// back while a step runs: an update waits most of its time.
func ungated(sess session.Session) session.Session {
	sess = unmanaged(sess)
	if s, ok := sess.(remoteStore); ok {
		return s.Store.Store.Session
	}
	return sess
}

// unmanaged returns the session inside the one that a Supervisor hands out.
func unmanaged(sess session.Session) session.Session {
	if m, ok := sess.(interface{ Unwrap() session.Session }); ok {
		return m.Unwrap()
	}
	return sess
}

// Batch returns the number of the batch for a replica's next gradients. While
// each gives one to an update, it follows from the step alone.
func (r *Replicas) Batch(step int64) int64 {
	c := r.config.Cluster
	if r.Aggregate <= r.Total {
		return step*int64(c.Workers) + int64(c.Task)
	}
	return r.first*int64(r.Aggregate) + r.made*int64(c.Workers) + int64(c.Task)
}

// RunStep contributes the gradients of a batch and waits until they are in the model. It returns
// what was fetched, and the next step.
func (r *Replicas) RunStep(ctx context.Context, sess session.Session, f program.Feed, fetches []string, step int64) (
	out []*ckptfmt.Tensor, next int64, err error) {
	r.made++
	w := r.newWait(sess, step)
	targets := append(r.RecordStep(step, f), r.program.Train...)
	given, err := w.run(ctx, f, append(fetches[:len(fetches):len(fetches)], r.Token), targets)
	if err == nil {
		out = given[:len(fetches)]
	}
	for err == nil {
		if next, err = session.ScalarInt(given[len(given)-1]); err != nil || next > step || r.Aggregate > r.Total {
			break
		}
		// The token was left by a replica that is gone, or by steps that were made
		// before the model was restored. With it we would give gradients for
		// this step twice.
		if _, err = r.CurrentStep(ctx, sess); err != nil {
			break
		}
		given, err = w.run(ctx, nil, []string{r.NextToken}, []string{r.Take})
	}
	switch {
	case errors.Is(err, errPassed):
		next, err = r.Join(ctx, sess)
	case errors.Is(err, errStopped):
		return nil, step, nil
	}
	w.over(err)
	return out, max(next, step), err
}

// Join makes the gradients that this replica gives next count for the step that
// the model is at, and returns that step. Gradients for an earlier one are dropped:
// should the model advance between the two, this replica would take a token of the
// new step, and wait for an update that lacks nothing but its own gradients.
func (r *Replicas) Join(ctx context.Context, sess session.Session) (int64, error) {
	step, err := r.CurrentStep(ctx, sess)
	for err == nil {
		if _, err = sess.Run(ctx, nil, nil, []string{r.Sync.LocalInit}); err != nil {
			break
		}
		before := step
		if step, err = r.CurrentStep(ctx, sess); step == before {
			break
		}
	}
	return step, err
}

// Why a wait was ended.
var (
	errPassed  = errors.New("the model has advanced without a token for this replica")
	errStopped = errors.New("a stop was requested")
)

// wait is one time that a replica waits for others.
type wait struct {
	*Replicas
	sess  session.Session
	step  int64
	began time.Time
	patience
	next   time.Time // when it is said again who is waited for
	said   bool
	passed int // looks in a row at which the model was ahead
}

func (r *Replicas) newWait(sess session.Session, step int64) *wait {
	now := time.Now()
	// Only the wait itself knows when to end a step.
	return &wait{Replicas: r, sess: unmanaged(sess), step: step, began: now,
		patience: r.newPatience(), next: now.Add(ReportAfter)}
}

// run runs a part of the step that waits for a token.
func (w *wait) run(ctx context.Context, f program.Feed, fetches, targets []string) (out []*ckptfmt.Tensor, err error) {
	_, end := trainerd.StepContext(ctx) // lets a save know of the step
	defer end()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = w.sess.Run(running, f, fetches, targets)
	}()
	if reason := w.watch(ctx, done); reason != nil {
		cancel()
		<-done
		if err != nil && !IsLost(err) {
			err = reason
		}
	}
	return out, err
}

// watch returns nil when done is closed, or why that is no longer waited for.
func (w *wait) watch(ctx context.Context, done <-chan struct{}) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-w.update:
			return fmt.Errorf("updating the model: %w", w.failed)
		case <-tick.C:
		}
		if err := w.poll(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		if ctx.Err() != nil && time.Since(w.began) > stepGrace {
			return errStopped
		}
	}
}

// poll finds out whether the model has advanced. It says who is waited for when
// that takes long, and gives up in the end.
func (w *wait) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	_, over := w.remaining()
	now, err := w.CurrentStep(ctx, w.sess)
	if err != nil {
		return w.unanswered(err, over)
	}
	if now <= w.step {
		w.passed = 0
	} else if w.passed++; w.passed >= passedPolls {
		return errPassed
	}
	if time.Now().Before(w.next) && !over {
		return nil
	}
	progress, err := w.readProgress(ctx, w.sess)
	if err != nil {
		return w.unanswered(err, over)
	}
	w.see(progress.sign)
	waited, missing := time.Since(w.began), progress.missing(w.step)
	if _, over = w.remaining(); over {
		return &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED, Message: fmt.Sprintf(
			"waited %v for %s; start what is missing, or set cluster.patience_secs", waited.Round(time.Second), missing)}
	}
	w.said, w.next = true, time.Now().Add(min(waited, ReportEvery))
	w.ReportWait(fmt.Sprintf("%s to do their part of step %d", missing, w.step+1))
	w.log.Warn("waiting for others to do their part of the step", "step", w.step+1, "for", missing, "waited", waited.Round(time.Second), "patience", w.limit)
	return nil
}

// unanswered is the error of a check for which the servers were too slow: none while there is
// patience, because the step itself may show the cause.
func (w *wait) unanswered(err error, over bool) error {
	if !slow(err) {
		return err
	}
	if time.Now().Before(w.next) && !over {
		return nil
	}
	waited := time.Since(w.began).Round(time.Second)
	who := "the servers to answer"
	if s, ok := w.sess.(interface{ silent(context.Context) string }); ok {
		who = s.silent(context.Background())
	}
	if over {
		return &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED, Message: fmt.Sprintf(
			"waited %v for step %d: %s; check it, or set cluster.patience_secs", waited, w.step+1, who)}
	}
	w.said, w.next = true, time.Now().Add(min(time.Since(w.began), ReportEvery))
	w.ReportWait(fmt.Sprintf("step %d: %s", w.step+1, who))
	w.log.Warn("the servers take long", "for", "a step", "step", w.step+1, "since", waited, "reason", who, "patience", w.limit)
	return nil
}

// slow reports whether an answer did not come in time.
func slow(err error) bool {
	return errors.Is(err, session.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// over reports the end of a wait that was reported.
func (w *wait) over(err error) {
	if w.said && err == nil {
		w.log.Info("the others did their part; training continues", "step", w.step+1, "waited", time.Since(w.began).Round(time.Millisecond))
	}
}

// IsLost reports whether a session is gone, whatever else has happened.
func IsLost(err error) bool {
	return errors.Is(err, session.ErrAborted) || errors.Is(err, session.ErrUnavailable)
}
