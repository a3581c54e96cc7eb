package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

const (
	// longCall is how long a call on servers may take before it is said that it
	// does, and who does not answer. It is said again every ReportEvery.
	longCall    = 10 * time.Second
	ReportEvery = 20 * time.Second
	// pingTimeout is how long a server may take to do nothing, or half of the
	// patience if that is less.
	pingTimeout = 5 * time.Second

	pingScope = tagScope + "ping_"
)

// watch sees to it that no call on servers hangs forever in silence: a server
// may be frozen, or out of reach without notice, and an op may wait for what
// nobody sends. A nil watch does nothing.
type watch struct {
	patience time.Duration // 0: forever
	servers  []string      // devices; server i has the node pingScope+i
	waits    map[string]bool
	skip     map[string]bool // see sharedCancels
	log      *slog.Logger
	report   func(reason string)                         // see task.waitsFor
	trains   map[string]bool                             // ops that only a step of the training runs
	progress func(ctx context.Context) (progress, error) // nil where a call waits for no other worker
	sess     *remote.Session
	client   *remote.Client
	tag      string // with which a worker's session began; "" for a chief's
	saveOp   string // by which servers save
	owner    *owner
}

// watchOf returns what watches a session, nil for one of this process.
func watchOf(sess session.Session) *watch {
	switch s := unmanaged(sess).(type) {
	case remoteSession:
		return s.watch
	case remoteStore:
		return s.watch
	}
	return nil
}

// newWatch returns the watch of a session. Calls that run one of the given ops may wait as long as
// they like: for room in a queue, or for other workers, for whom other code waits.
func (t *Task) newWatch(s *target.Session, servers []string) *watch {
	w := &watch{patience: t.config.Cluster.PatienceSecs.Duration(), servers: servers, waits: map[string]bool{},
		trains: map[string]bool{}, saveOp: t.saveOp(), owner: new(owner),
		log: t.log, report: t.ReportWait, sess: s.Session, client: s.Client}
	if t.tracksWorkers() {
		w.progress = func(ctx context.Context) (progress, error) { return t.readProgress(ctx, s.Session) }
	}
	for _, name := range t.feedOps() {
		w.waits[name] = true
	}
	for _, name := range t.program.Train {
		w.trains[name] = true
	}
	if t.program.Sync != nil {
		for _, name := range append(t.program.Train, t.program.Sync.Take, t.program.Sync.Update) {
			w.waits[name] = true
		}
	}
	return w
}

// server matches the part of a device that names its server.
var server = lazyregexp.New(`^/job:[^/]+(/replica:\d+)?/task:\d+`)

// addPings adds to a graph a node that does nothing for each server that the
// graph names. It returns these.
func addPings(def *tfpb.GraphDef) []string {
	var servers []string
	for _, n := range def.GetNode() {
		if s := server().FindString(n.GetDevice()); s != "" && !slices.Contains(servers, s) {
			servers = append(servers, s)
		}
	}
	for i, s := range servers {
		def.Node = append(def.Node, &tfpb.NodeDef{Name: pingName(i), Op: "NoOp", Device: s})
	}
	return servers
}

func pingName(i int) string { return fmt.Sprint(pingScope, i) }

// runFunc is the Run of a session.
type runFunc func(ctx context.Context, feeds program.Feed, fetches, targets []string) ([]*ckptfmt.Tensor, error)

// call runs a step, and ends it when patience is over.
func (w *watch) call(ctx context.Context, run runFunc, feeds program.Feed, fetches, targets []string) (out []*ckptfmt.Tensor, err error) {
	if w != nil && len(targets) == 1 && len(fetches) == 0 && w.skip[targets[0]] {
		return nil, nil // the end of ctx ends the call that fills the queue
	}
	if w == nil {
		return run(ctx, feeds, fetches, targets)
	}
	if err := w.checkRested(ctx); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(targets, func(name string) bool { return w.waits[name] }) {
		return run(ctx, feeds, fetches, targets)
	}
	if !slices.ContainsFunc(targets, func(name string) bool { return w.trains[name] }) {
		alone := *w
		alone.progress = nil
		w = &alone
	}
	what := "a step"
	if names := slices.Concat(targets, fetches); len(names) > 0 {
		name, _, _ := strings.Cut(names[0], ":")
		what = "running " + name
	}
	err = w.guard(ctx, what, func(ctx context.Context) error {
		out, err = run(ctx, feeds, fetches, targets)
		return err
	})
	return out, err
}

// guard does something, and ends it when patience is over, or the generation
// with which a worker's session began.
func (w *watch) guard(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.supervise(ctx, what); err != nil {
			cancel(err)
		}
	}()
	err := do(ctx)
	cancel(nil)
	<-ended
	var over *endedByWatch
	if err != nil && errors.As(context.Cause(ctx), &over) {
		return over.reason
	}
	return err
}

// endedByWatch ends a call that is not worth waiting for any more.
type endedByWatch struct{ reason *session.OpError }

func (e *endedByWatch) Error() string { return e.reason.Error() }

// supervise waits until ctx is done, and logs what blocks a call that takes long. It gives up with
// an *endedByWatch.
func (w *watch) supervise(ctx context.Context, what string) error {
	said := false
	defer func() {
		if said {
			w.report("")
		}
	}()
	began, next := time.Now(), longCall
	p := patience{limit: w.patience, since: began}
	tick := time.NewTimer(w.pause(&p, next))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if w.replaced(ctx) {
			return &endedByWatch{ErrReplaced}
		}
		waited := time.Since(began)
		if _, over := p.remaining(); waited >= next || over {
			reason, sign := w.reason(ctx)
			p.see(sign)
			_, over = p.remaining()
			switch {
			case ctx.Err() != nil:
				return nil
			case over:
				return &endedByWatch{&session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED,
					Message: fmt.Sprintf("%s has not ended within %v: %s; check it, or set cluster.patience_secs", what, waited.Round(min(time.Second, w.patience)), reason)}}
			}
			said, next = true, waited+ReportEvery
			w.report("the servers, " + what + ": " + reason)
			w.log.Warn("the servers take long", "for", what, "since", waited.Round(time.Second), "reason", reason, "patience", w.patience)
		}
		tick.Reset(w.pause(&p, next-time.Since(began)))
	}
}

// pause returns how long to wait before the next check of a call.
func (w *watch) pause(p *patience, next time.Duration) time.Duration {
	if w.tag != "" {
		next = min(next, pollEvery)
	}
	if left, _ := p.remaining(); p.limit > 0 {
		next = min(next, left)
	}
	return max(next, 0)
}

// replaced reports whether the generation with which a worker's session began is
// over. Servers that do not answer say nothing.
func (w *watch) replaced(ctx context.Context) bool {
	if w.tag == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	tag, err := readTag(ctx, w.sess)
	return err == nil && tag != w.tag
}

// reason says who does not answer. The sign is the chief's.
func (w *watch) reason(ctx context.Context) (who string, sign int64) {
	limit := pingTimeout
	if w.patience > 0 {
		limit = min(limit, w.patience/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.client.Wait(ctx); err != nil {
		return "the server " + w.client.Target() + " does not answer", 0
	}
	answers := make(chan string, len(w.servers))
	for i, s := range w.servers {
		go func() {
			if _, err := w.sess.Run(ctx, nil, nil, []string{pingName(i)}); err == nil {
				s = ""
			}
			answers <- s
		}()
	}
	var silent []string
	for range w.servers {
		if s := <-answers; s != "" {
			silent = append(silent, s)
		}
	}
	if len(silent) > 0 {
		slices.Sort(silent)
		return "no answer from " + strings.Join(silent, ", "), 0
	}
	if w.progress == nil {
		return "all servers answer, so an op in it computes, or waits, as for the input of a queue", 0
	}
	p, err := w.progress(ctx)
	if err != nil || p.steps == nil {
		return "all servers answer, so an op in it waits, as for the input of a queue or the gradients of another worker", 0
	}
	return "all servers answer; it waits for " + p.missing(-1), p.sign
}

// feedOps returns the ops by which queue runners fill queues.
func (t *Task) feedOps() []string {
	runners, err := t.program.QueueRunners()
	if err != nil {
		return nil // the Supervisor will say so
	}
	var ops []string
	for _, q := range runners {
		ops = append(ops, q.GetEnqueueOpName()...)
	}
	return ops
}
