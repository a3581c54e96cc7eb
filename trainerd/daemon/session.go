package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// sessions makes the sessions in which a job's program lives. It is the only place that knows the
// kinds of masters; its results are used only as [session.Session].
type sessions struct {
	config         *config.Config
	program        *program.Program
	task           *cluster.Task
	log            *slog.Logger
	stdout, stderr io.Writer                             // of ops that print; nil discards
	served         func(master string)                   // called with the address of the model's server; may be nil
	wrap           func(session.Session) session.Session // put around what the run trains in; may be nil
	// first returns the names of the step that a session will begin with; may be nil.
	first func() (feeds, fetches, targets []string)

	sayFlaws sync.Once // logs what of the input is not exactly resumable, and whose events are not seen
}

// open makes a session where the config says.
func (s *sessions) open(ctx context.Context) (session.Session, error) {
	sess, err := s.make(ctx)
	if err != nil {
		return nil, err
	}
	s.sayFlaws.Do(func() {
		for _, line := range s.notResumable(sess) {
			s.log.Warn("not exactly resumable: " + line)
		}
		if line := sharedEvents(s.program, s.config); line != "" {
			s.log.Warn(line)
		}
	})
	s.prepare(sess)
	if s.wrap == nil {
		return sess, nil
	}
	return s.wrap(sess), nil
}

// prepare has the first step compiled while the model is initialised or restored.
func (s *sessions) prepare(sess session.Session) {
	if s.first == nil {
		return
	}
	switch sess := sess.(type) {
	case *runtime.Session:
		sess.Prepare(s.first())
	case *target.Served:
		sess.Session.Prepare(s.first())
	}
}

func (s *sessions) make(ctx context.Context) (session.Session, error) {
	switch {
	case s.config.IsRemote():
		return s.task.Connect(ctx)
	case s.config.IsServed():
		return s.serve()
	}
	return s.embedded()
}

// embedded makes a session of this process.
func (s *sessions) embedded() (session.Session, error) {
	sess, err := runtime.New(s.program.Meta.GetGraphDef(), &runtime.Options{
		Dir: s.program.Dir, Logger: s.log, Stdout: s.stdout, Stderr: s.stderr, MaxMemory: s.maxMemory(), MemoryOption: memoryKey,
	})
	if err != nil {
		return nil, err
	}
	if err := s.checkOps(sess); err != nil {
		sess.Close()
		return nil, err
	}
	return sess, nil
}

// memoryKey is what errors of sessions name as the place of their limit.
const memoryKey = "train.memory_mb"

func (s *sessions) maxMemory() int64 { return int64(s.config.Train.MemoryMB) << 20 }

// notResumable says what of the graph's input does not continue exactly after a
// kill, and why: a line for each node. sess is the program's session, or nil before
// there is one.
func (s *sessions) notResumable(sess session.Session) []string {
	if s.config.IsRemote() {
		return s.lostOnServers()
	}
	var local *runtime.Session
	switch made := sess.(type) {
	case *runtime.Session:
		local = made
	case *target.Served:
		local = made.Session
	default:
		probe, err := runtime.New(s.program.Meta.GetGraphDef(), nil)
		if err != nil {
			return nil // every other use of the graph reports it
		}
		defer probe.Close()
		local = probe
	}
	runners, err := s.program.QueueRunners()
	if err != nil {
		return nil
	}
	return local.NotResumable(runners)
}

// lostOnServers says what of a training on servers is not in its checkpoints.
func (s *sessions) lostOnServers() []string {
	g, err := s.program.Graph()
	if err != nil {
		return nil // every other use of the graph reports it
	}
	lines := s.randomOnServers()
	for _, name := range program.Ancestors(g, s.program.Train, program.TakesInput) {
		if len(program.Ancestors(g, []string{name}, program.IsApplyGradient)) == 0 { // else it is a token
			lines = append(lines, name+": the input of a session on a server is not in checkpoints")
		}
	}
	return lines
}

// randomOnServers says which random numbers of a training on servers are others
// after a kill.
func (s *sessions) randomOnServers() []string {
	var lines []string
	for _, name := range cluster.RandomOps(s.program.Meta.GetGraphDef(), s.program.Train) {
		lines = append(lines, name+": the random numbers of a session on a server begin again in each session")
	}
	return lines
}

// inputRestored reports whether a session has put back the state of the
// graph's input.
func inputRestored(sess session.Session) bool {
	for {
		switch inner := sess.(type) {
		case interface{ InputRestored() bool }:
			return inner.InputRestored()
		case interface{ Unwrap() session.Session }:
			sess = inner.Unwrap()
		default:
			return false
		}
	}
}

// checkOps reports all ops that the runtime lacks of those that the job needs.
func (s *sessions) checkOps(sess *runtime.Session) error {
	p := s.program
	targets := slices.Concat(p.Train, p.Init, p.LocalInit, p.Ready, p.ReadyForLocal)
	fetches := append(slices.Clone(p.Summary), p.GlobalStep)
	if p.Sync != nil {
		targets = append(targets, p.Sync.ChiefInit, p.Sync.InitTokens, p.Sync.Update, p.Sync.Take)
	}
	for _, m := range slices.Concat(p.Show, p.Metrics) {
		fetches = append(fetches, m.Tensor)
	}
	runners, err := s.program.QueueRunners()
	if err != nil {
		return err
	}
	for _, q := range runners {
		targets = append(targets, q.GetEnqueueOpName()...)
		for _, op := range []string{q.GetCloseOpName(), q.GetCancelOpName()} {
			targets = append(targets, program.NonEmpty(op)...)
		}
	}
	return sess.Check(nil, fetches, targets)
}

// serve makes a session of this process and serves its variables.
func (s *sessions) serve() (session.Session, error) {
	ln, err := cluster.Listen(s.config.Cluster.Listen)
	if err != nil {
		return nil, fmt.Errorf("cluster.listen: %w", err)
	}
	sess, err := (&target.Options{
		Dir: s.program.Dir, Logger: s.log, Stdout: s.stdout, Stderr: s.stderr, Listener: ln, FilesWithin: s.config.ClientFiles(),
		MaxMemory: s.maxMemory(), MemoryOption: memoryKey,
	}).Serve(s.program.Meta.GetGraphDef())
	if err != nil {
		return nil, err
	}
	if err := s.checkOps(sess.Session); err != nil {
		sess.Close()
		return nil, err
	}
	if s.served != nil {
		s.served(sess.Master())
	}
	return sess, nil
}
