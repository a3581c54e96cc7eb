package trainerd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A kind is a kind of session with a kind of variables.
type kind struct {
	name     string
	resource bool
	// start begins a process with a model that has no values yet. A nil graph is
	// that of a program without one.
	start func(t *testing.T, meta *tfpb.MetaGraphDef) func(context.Context) (session.Session, error)
	// knows says that what has not changed is not saved again.
	knows bool
	// takes says that the session takes values for its variables.
	takes bool
	// blind says that the session shows nothing but its steps.
	blind bool
	// shared says that sessions of one process have the same variables.
	shared bool
}

// kinds is the table of all kinds of sessions. Behaviour that must not depend on
// the kind is tested by forEachKind.
var kinds = []*kind{
	{name: "embedded, reference variables", start: embedded, knows: true, takes: true},
	{name: "embedded, resource variables", resource: true, start: embedded, knows: true, takes: true},
	{name: "embedded, copied", resource: true, start: embeddedCopied, knows: true, takes: true},
	{name: "Go variables", knows: true, takes: true},
	{name: "over the wire, reference variables", start: overTheWire, shared: true},
	{name: "over the wire, resource variables", resource: true, start: overTheWire, shared: true},
	{name: "hidden, reference variables", start: hidden, blind: true},
	{name: "copied over the wire, reference variables", start: copiedOverTheWire, knows: true, takes: true, shared: true},
	{name: "copied over the wire, resource variables", resource: true, start: copiedOverTheWire, knows: true, takes: true, shared: true},
}

// forEachKind runs a test on every kind of session.
func forEachKind(t *testing.T, test func(t *testing.T, k *kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

func embedded(_ *testing.T, meta *tfpb.MetaGraphDef) func(context.Context) (session.Session, error) {
	return func(context.Context) (session.Session, error) { return runtime.New(meta.GetGraphDef(), nil) }
}

// embeddedCopied hides everything but that the session is a VariableStore.
func embeddedCopied(_ *testing.T, meta *tfpb.MetaGraphDef) func(context.Context) (session.Session, error) {
	return func(context.Context) (session.Session, error) {
		s, err := runtime.New(meta.GetGraphDef(), nil)
		return struct{ session.VariableStore }{s}, err
	}
}

// hidden hides everything of a session, as one does that a program wraps.
func hidden(_ *testing.T, meta *tfpb.MetaGraphDef) func(context.Context) (session.Session, error) {
	return func(context.Context) (session.Session, error) {
		s, err := runtime.New(meta.GetGraphDef(), nil)
		return struct{ session.Session }{s}, err
	}
}

// overTheWire starts a server, whose variables outlive its sessions.
func overTheWire(t *testing.T, meta *tfpb.MetaGraphDef) func(context.Context) (session.Session, error) {
	client := startServer(t)
	return func(ctx context.Context) (session.Session, error) {
		return client.NewSession(ctx, meta.GetGraphDef(), nil)
	}
}

func copiedOverTheWire(t *testing.T, meta *tfpb.MetaGraphDef) func(context.Context) (session.Session, error) {
	client := startServer(t)
	return func(ctx context.Context) (session.Session, error) {
		s, err := client.NewSession(ctx, meta.GetGraphDef(), nil)
		if err != nil {
			return nil, err
		}
		return remote.NewStore(ctx, s, meta.GetGraphDef())
	}
}

func startServer(t *testing.T) *remote.Client {
	t.Helper()
	ln := sessiontest.NewPipes()
	server, served := master.New(nil), make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	client, err := remote.Dial(t.Context(), "grpc://server:2222", &remote.Options{ConnectTimeout: time.Minute, DialContext: ln.Dial})
	sessiontest.MustNoErr(t, err)
	t.Cleanup(func() {
		sessiontest.MustNoErr(t, errors.Join(client.Close(), server.Close(), <-served))
	})
	return client
}

// A process is one life of a program with a model of some kind: w and
// global_step begin at 0, and with a graph there is also what kindGraph has.
type process struct {
	t    *testing.T
	kind *kind
	meta *tfpb.MetaGraphDef
	open func(context.Context) (session.Session, error)

	vars *trainerd.Variables // without a graph
	w    []float32
	step []int64
}

func (k *kind) process(t *testing.T) *process {
	p := &process{t: t, kind: k}
	if k.start == nil {
		p.vars, p.w, p.step, p.open = new(trainerd.Variables), make([]float32, 1), make([]int64, 1), nil
		sessiontest.MustNoErr(t, errors.Join(p.vars.Float32("w", p.w), p.vars.Int64("my_step", p.step)))
		p.open = p.vars.Session
		return p
	}
	p.meta = kindGraph(k.resource)
	p.open = k.start(t, p.meta)
	return p
}

// supervisor makes a Supervisor that saves at the end.
func (p *process) supervisor(logdir string) *trainerd.Supervisor {
	sv := &trainerd.Supervisor{NewSession: p.open, MetaGraph: p.meta, Logdir: logdir, SaveModelEvery: 1 << 40, SaveSummariesEvery: -1}
	if p.vars != nil {
		sv.GlobalStep = trainerd.Nodes("my_step")
		sv.SummaryOp = trainerd.SummaryFunc(func(ctx context.Context, s session.Session) (*tfpb.Summary, error) {
			out, err := s.Run(ctx, nil, []string{"w"}, nil)
			if err != nil {
				return nil, err
			}
			w, err := ckptfmt.Values[float32](out[0])
			if err != nil {
				return nil, err
			}
			return summary.New(summaryv1.Scalar("w", float64(w[0]))), nil
		})
	}
	return sv
}

// train makes so many steps.
func (p *process) train(ctx context.Context, s session.Session, steps int) {
	p.t.Helper()
	for range steps {
		p.run(ctx, s, "train", nil, func() { p.w[0] += 0.5; p.step[0]++ })
	}
}

// trainStale makes steps that do not raise the global step.
func (p *process) trainStale(ctx context.Context, s session.Session, steps int) {
	p.t.Helper()
	for range steps {
		p.run(ctx, s, "stale", nil, func() { p.w[0] += 0.5 })
	}
}

func (p *process) setStep(ctx context.Context, s session.Session, step int64) {
	p.t.Helper()
	p.run(ctx, s, "step/set", map[string]*ckptfmt.Tensor{"step/value:0": ckptfmt.Scalar(step)}, func() { p.step[0] = step })
}

func (p *process) run(ctx context.Context, s session.Session, target string, feeds map[string]*ckptfmt.Tensor, change func()) {
	p.t.Helper()
	var err error
	if p.vars != nil {
		_, err = p.vars.Step(func() error { change(); return nil })
	} else {
		_, err = s.Run(ctx, feeds, nil, []string{target})
	}
	sessiontest.MustNoErr(p.t, err)
}

// value reads a variable of the session.
func (p *process) value(ctx context.Context, s session.Session, name string) float32 {
	p.t.Helper()
	tensor := name + "/read:0"
	if p.vars != nil {
		tensor = name
	}
	out, err := s.Run(ctx, nil, []string{tensor}, nil)
	sessiontest.MustNoErr(p.t, err)
	v, err := ckptfmt.Values[float32](out[0])
	sessiontest.MustNoErr(p.t, err)
	return v[0]
}

// wantSaved checks the value of w in a checkpoint.
func wantSaved(t *testing.T, prefix string, want float32) {
	t.Helper()
	r, err := ckptfmt.Open(prefix, nil)
	sessiontest.MustNoErr(t, err)
	defer r.Close()
	value, err := r.Lookup("w")
	sessiontest.MustNoErr(t, err)
	w, err := ckptfmt.Values[float32](value)
	if sessiontest.MustNoErr(t, err); w[0] != want {
		t.Errorf("%s has w = %v; want %v", prefix, w[0], want)
	}
}
