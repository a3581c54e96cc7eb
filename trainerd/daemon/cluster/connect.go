package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// ReportAfter is how long servers may take to answer before it is said who is
// waited for.
const ReportAfter = 5 * time.Second

// remoteSession is a session on servers that are watched.
type remoteSession struct {
	*target.Session
	watch *watch
	made  *blueprint
}

func (s remoteSession) Run(ctx context.Context, feeds program.Feed, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if s.watch.saveOp == "" || !slices.Contains(fetches, s.watch.saveOp) {
		return s.watch.call(ctx, s.Session.Run, feeds, fetches, targets)
	}
	if err := s.watch.checkModel(ctx); err != nil { // before a file is written, and whether it has what was looked at
		return nil, err
	}
	out, err := s.watch.call(ctx, s.Session.Run, feeds, fetches, targets)
	if err == nil {
		err = s.watch.checkModel(ctx)
	}
	return out, err
}

// Close ends the signs of life, too.
func (s remoteSession) Close() error {
	s.watch.endLife()
	return s.Session.Close()
}

func (s remoteSession) silent(ctx context.Context) string {
	who, _ := s.watch.reason(ctx)
	return who
}

// remoteStore is a remoteSession whose variables this process copies.
type remoteStore struct {
	*target.Store
	watch *watch
	made  *blueprint
}

func (s remoteStore) Run(ctx context.Context, feeds program.Feed, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	return s.watch.call(ctx, s.Store.Run, feeds, fetches, targets)
}

func (s remoteStore) Snapshot(ctx context.Context, names []string) (snap *session.Snapshot, err error) {
	err = s.watch.guard(ctx, "copying the variables", func(ctx context.Context) error {
		if snap, err = s.Store.Snapshot(ctx, names); err == nil {
			err = s.watch.checkModel(ctx)
		}
		return err
	})
	return snap, err
}

func (s remoteStore) Restore(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.watch.guard(ctx, "restoring the variables", func(ctx context.Context) error {
		return s.Store.Restore(ctx, values)
	})
}

// Close ends the signs of life, too.
func (s remoteStore) Close() error {
	s.watch.endLife()
	return s.Store.Close()
}

func (s remoteStore) silent(ctx context.Context) string {
	who, _ := s.watch.reason(ctx)
	return who
}

// errOutOfPatience ends the making of a session that takes too long, unless the
// SessionManager, which has the same patience with all attempts, does.
var errOutOfPatience = &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED, Message: "cluster.patience_secs is over"}

// Connect makes a session with the job's program on its servers. It waits for
// them as long as the job's patience lasts.
func (t *Task) Connect(ctx context.Context) (_ session.Session, err error) {
	c := t.config.Cluster
	options, err := dialOptions(c)
	if err != nil {
		return nil, err
	}
	options.DialContext, options.NoReconnectJitter = t.Dial, t.Dial != nil
	def, err := t.placed()
	if err != nil {
		return nil, err
	}
	servers := addPings(def)
	if c.PatienceSecs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.PatienceSecs.Duration(), errOutOfPatience)
		defer cancel()
		defer func() {
			if err != nil && errors.Is(context.Cause(ctx), session.ErrDeadlineExceeded) {
				err = &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED, Err: err,
					Message: fmt.Sprintf("the servers have made no session within %v; check them, or set cluster.patience_secs", c.PatienceSecs.Duration())}
			}
		}()
	}
	slow := time.AfterFunc(ReportAfter, func() {
		t.ReportWait("the servers to answer: " + strings.Join(append([]string{t.config.Master}, deviceFilters(c)...), " "))
		t.log.Warn("waiting for the servers to answer", "master", t.config.Master, "needs", strings.Join(deviceFilters(c), " "), "patience", c.PatienceSecs.Duration())
	})
	defer slow.Stop()
	sess, err := t.dialServers(ctx, def, servers, options)
	if err == nil && !slow.Stop() {
		t.ReportWait("") // they have answered
	}
	return sess, err
}

// dialServers makes a session with a graph that has pings of its servers. A
// worker's is of no use before the chief has made the model.
func (t *Task) dialServers(ctx context.Context, def *tfpb.GraphDef, servers []string, options *remote.Options) (session.Session, error) {
	c := t.config.Cluster
	config := &tfpb.ConfigProto{AllowSoftPlacement: true, DeviceFilters: deviceFilters(c)}
	sess, err := (&target.Options{Remote: options, Config: config}).Dial(ctx, t.config.Master, def)
	if err != nil {
		return nil, err
	}
	made := &blueprint{def, config, copiesOf(t.config.Logdir)}
	s := remoteSession{sess, t.newWatch(sess, servers), made}
	s.watch.skip = t.sharedCancels(def)
	if !t.config.Supervisor.IsChief {
		if s.watch.tag, err = t.awaitTag(ctx, s); err != nil {
			s.Close()
			return nil, err
		}
	}
	if c.CheckpointVia == "server" {
		return s, nil
	}
	store, err := sess.Store(ctx, def)
	if err != nil {
		return nil, err
	}
	return remoteStore{store, s.watch, made}, nil
}
