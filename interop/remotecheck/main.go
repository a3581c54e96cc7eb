// Remotecheck drives a TensorFlow server through the remote package, for a
// test that starts, kills and restarts the server.
//
//	remotecheck grpc://HOST:PORT PROGRAM_DIR WORK_DIR
//
// It trains a recorded program from its first checkpoint to its end and saves
// in between. When it then says "trained", the test kills the server and
// writes a line; when it says "lost", the test starts the server again and
// writes a line; it restores what it saved and trains to the end once more.
// What it saw goes to stdout, a JSON object a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/session"
)

const patience = 60 * time.Second

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: remotecheck grpc://HOST:PORT PROGRAM_DIR WORK_DIR")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := check(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "remotecheck:", err)
		os.Exit(1)
	}
}

// program is a recorded program.
type program struct {
	Steps   int               `json:"steps"`
	TrainOp string            `json:"train_op"`
	InitOp  string            `json:"init_op"`
	Fetches map[string]string `json:"fetches"`

	dir   string
	meta  *tfpb.MetaGraphDef
	feeds []map[string]*ckptfmt.Tensor // by step
}

// checker is one run of this program.
type checker struct {
	program
	client *remote.Client
	sess   *remote.Session
	saver  *checkpoint.Saver
	work   string
	stdin  *bufio.Reader
}

// seenError is an error as the test compares it.
type seenError struct {
	Code, Node, Op, Text string
}

func seen(err error) *seenError {
	var op *session.OpError
	if !errors.As(err, &op) {
		return &seenError{Text: fmt.Sprint(err)}
	}
	return &seenError{op.Code.String(), op.Node, op.Op, err.Error()}
}

func say(event string, facts map[string]any) {
	facts["event"] = event
	json.NewEncoder(os.Stdout).Encode(facts)
}

func check(ctx context.Context, target, dir, work string) error {
	c := &checker{work: work, stdin: bufio.NewReader(os.Stdin)}
	if err := c.load(dir); err != nil {
		return err
	}
	var err error
	if c.client, err = remote.Dial(ctx, target, nil); err != nil {
		return err
	}
	defer c.client.Close()
	if c.sess, err = c.client.NewSession(ctx, c.meta.GetGraphDef(), nil); err != nil {
		return err
	}
	c.saver = &checkpoint.Saver{MetaGraph: c.meta}
	for _, part := range []func(context.Context) error{c.errorsOfSteps, c.train, c.copy, c.crash, c.recover, c.reset} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) load(dir string) error {
	p.dir, p.meta = dir, &tfpb.MetaGraphDef{}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return err
	}
	graph, err := os.ReadFile(filepath.Join(dir, "graph.meta"))
	if err != nil {
		return err
	}
	if err := errors.Join(json.Unmarshal(manifest, p), proto.Unmarshal(graph, p.meta)); err != nil {
		return err
	}
	r, err := ckptfmt.OpenBundle(filepath.Join(dir, "feeds", "feeds"), nil)
	if err != nil {
		return err
	}
	defer r.Close()
	p.feeds = make([]map[string]*ckptfmt.Tensor, p.Steps)
	for info, err := range r.Tensors() {
		if err != nil {
			return err
		}
		var step int
		prefix, name, _ := strings.Cut(info.Name, "/")
		if _, err := fmt.Sscanf(prefix, "step_%d", &step); err != nil || step >= p.Steps {
			return fmt.Errorf("feed %q: no step of the program", info.Name)
		}
		t, err := r.Lookup(info.Name)
		if err != nil {
			return err
		}
		if p.feeds[step] == nil {
			p.feeds[step] = map[string]*ckptfmt.Tensor{}
		}
		p.feeds[step][name+":0"] = t
	}
	return nil
}

// queue is a graph that waits for what nobody sends, and one that is run in
// parts.
func queue() *tfpb.GraphDef {
	dtype := &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_FLOAT}}
	types := &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: []tfpb.DataType{tfpb.DataType_DT_FLOAT}}}}
	components := map[string]*tfpb.AttrValue{"component_types": types}
	return &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "check/queue", Op: "FIFOQueueV2", Attr: components},
		{Name: "check/wait", Op: "QueueDequeueV2", Input: []string{"check/queue"}, Attr: components},
		{Name: "check/close", Op: "QueueCloseV2", Input: []string{"check/queue"}},
		{Name: "check/other", Op: "FIFOQueueV2", Attr: components},
		{Name: "check/wait_other", Op: "QueueDequeueV2", Input: []string{"check/other"}, Attr: components},
		{Name: "check/a", Op: "Placeholder", Attr: map[string]*tfpb.AttrValue{"dtype": dtype}},
		{Name: "check/b", Op: "Placeholder", Attr: map[string]*tfpb.AttrValue{"dtype": dtype}},
		{Name: "check/neg", Op: "Neg", Input: []string{"check/a"}, Attr: map[string]*tfpb.AttrValue{"T": dtype}},
		{Name: "check/mul", Op: "Mul", Input: []string{"check/neg", "check/b"}, Attr: map[string]*tfpb.AttrValue{"T": dtype}},
	}}
}

// errorsOfSteps makes steps fail on purpose, and tries what a training does
// not need.
func (c *checker) errorsOfSteps(ctx context.Context) error {
	facts := map[string]any{}
	fail := func(name string, err error) { facts[name] = seen(err) }
	run := func(ctx context.Context, fetches ...string) error {
		_, err := c.sess.Run(ctx, nil, fetches, nil)
		return err
	}
	fail("uninitialized", run(ctx, "w/read"))
	fail("unfed", run(ctx, "x"))
	fail("no such node", run(ctx, "nosuch"))
	if err := c.sess.Extend(ctx, queue()); err != nil {
		return err
	}
	fail("extended twice", c.sess.Extend(ctx, queue()))
	facts["graph version"] = c.sess.GraphVersion()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	fail("deadline", run(short, "check/wait"))
	if _, err := c.sess.Run(ctx, nil, nil, []string{"check/close"}); err != nil {
		return err
	}
	fail("end of input", run(ctx, "check/wait"))
	_, err := c.client.NewSession(ctx, &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "bad", Op: "NoSuchOp"}}}, nil)
	fail("no such op", err)
	if facts["parts"], err = c.parts(ctx); err != nil {
		return err
	}
	devices, err := c.sess.ListDevices(ctx)
	if err != nil {
		return err
	}
	facts["device"] = devices[0].GetName()
	large := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2 << 20}, Data: make([]byte, 8<<20)}
	out, err := c.sess.Run(ctx, map[string]*ckptfmt.Tensor{"check/a": large}, []string{"check/neg"}, nil)
	if err != nil {
		return err
	}
	facts["large"] = len(out[0].Data)
	say("checked", facts)
	return nil
}

// parts runs -a, then -a*b, as one step in two parts.
func (c *checker) parts(ctx context.Context) ([]float32, error) {
	p, err := c.sess.PartialRunSetup(ctx, []string{"check/a", "check/b"}, []string{"check/neg", "check/mul"}, nil)
	if err != nil {
		return nil, err
	}
	neg, err := p.Run(ctx, map[string]*ckptfmt.Tensor{"check/a": ckptfmt.Scalar[float32](2)}, []string{"check/neg"})
	if err != nil {
		return nil, err
	}
	mul, err := p.Run(ctx, map[string]*ckptfmt.Tensor{"check/b": ckptfmt.Scalar[float32](5)}, []string{"check/mul"})
	if err != nil {
		return nil, err
	}
	return floats(append(neg, mul...))
}

func floats(tensors []*ckptfmt.Tensor) ([]float32, error) {
	var all []float32
	for _, t := range tensors {
		v, err := ckptfmt.Values[float32](t)
		if err != nil {
			return nil, err
		}
		all = append(all, v...)
	}
	return all, nil
}

// train runs all steps, the second half as a callable, and saves in between.
func (c *checker) train(ctx context.Context) error {
	if _, err := c.sess.Run(ctx, nil, nil, []string{c.InitOp}); err != nil {
		return err
	}
	if err := c.saver.Restore(ctx, c.sess, filepath.Join(c.dir, "init", "model.ckpt-0")); err != nil {
		return err
	}
	losses, err := c.steps(ctx, 0, c.Steps/2)
	if err != nil {
		return err
	}
	cut, err := c.saver.Snapshot(ctx, c.sess, "global_step")
	if err != nil {
		return err
	}
	prefix, err := c.saver.Write(ctx, cut, filepath.Join(c.work, "model.ckpt"), cut.Step)
	if err != nil {
		return err
	}
	more, err := c.callableSteps(ctx, c.Steps/2, c.Steps)
	if err != nil {
		return err
	}
	say("trained", map[string]any{"losses": append(losses, more...), "saved": prefix})
	return nil
}

func (c *checker) steps(ctx context.Context, from, to int) ([]float32, error) {
	var losses []float32
	for _, feeds := range c.feeds[from:to] {
		out, err := c.sess.Run(ctx, feeds, []string{c.Fetches["loss"]}, []string{c.TrainOp})
		if err != nil {
			return nil, err
		}
		loss, err := floats(out)
		if err != nil {
			return nil, err
		}
		losses = append(losses, loss...)
	}
	return losses, nil
}

func (c *checker) callableSteps(ctx context.Context, from, to int) ([]float32, error) {
	callable, err := c.sess.MakeCallable(ctx, []string{"x", "y"}, []string{c.Fetches["loss"]}, []string{c.TrainOp})
	if err != nil {
		return nil, err
	}
	defer callable.Close()
	var losses []float32
	for _, feeds := range c.feeds[from:to] {
		out, err := callable.Run(ctx, []*ckptfmt.Tensor{feeds["x:0"], feeds["y:0"]})
		if err != nil {
			return nil, err
		}
		loss, err := floats(out)
		if err != nil {
			return nil, err
		}
		losses = append(losses, loss...)
	}
	return losses, nil
}

// copy saves the variables twice, by the server and by this process.
func (c *checker) copy(ctx context.Context) error {
	store, err := remote.NewStore(ctx, c.sess, c.meta.GetGraphDef())
	if err != nil {
		return err
	}
	facts := map[string]any{}
	for name, sess := range map[string]session.Session{"server": c.sess, "client": store} {
		saver := &checkpoint.Saver{MetaGraph: c.meta}
		cut, err := saver.Snapshot(ctx, sess, "global_step")
		if err != nil {
			return err
		}
		if facts[name], err = saver.Write(ctx, cut, filepath.Join(c.work, name, "model.ckpt"), cut.Step); err != nil {
			return err
		}
	}
	say("copied", facts)
	return nil
}

// crash sees the server killed, with a step in flight, and come back.
func (c *checker) crash(ctx context.Context) error {
	facts := map[string]any{}
	_, inFlight := c.sess.Run(ctx, nil, []string{"check/wait_other"}, nil)
	facts["in flight"] = seen(inFlight)
	if err := c.awaitLine(); err != nil {
		return err
	}
	_, down := c.steps(ctx, 0, 1)
	facts["down"] = seen(down)
	say("lost", facts)
	if err := c.awaitLine(); err != nil {
		return err
	}
	if err := c.client.Wait(ctx); err != nil {
		return err
	}
	_, gone := c.steps(ctx, 0, 1)
	say("back", map[string]any{"gone": seen(gone), "closed": fmt.Sprint(c.sess.Close())})
	return nil
}

// recover opens a session on the new server and continues from the checkpoint.
func (c *checker) recover(ctx context.Context) error {
	fresh, err := c.client.NewSession(ctx, c.meta.GetGraphDef(), nil)
	if err != nil {
		return err
	}
	_, empty := fresh.Run(ctx, nil, []string{"w/read"}, nil)
	if err := fresh.Close(); err != nil {
		return err
	}
	manager := trainerd.SessionManager{Saver: c.saver, CheckpointDir: c.work,
		NewSession: func(ctx context.Context) (session.Session, error) {
			return c.client.NewSession(ctx, c.meta.GetGraphDef(), nil)
		}}
	sess, prepared, err := manager.PrepareSession(ctx)
	if err != nil {
		return err
	}
	c.sess = sess.(*remote.Session)
	losses, err := c.steps(ctx, c.Steps/2, c.Steps)
	if err != nil {
		return err
	}
	say("recovered", map[string]any{"losses": losses, "restored": prepared.Restored, "empty": seen(empty)})
	return nil
}

// reset ends what is left on the server when the test says so.
func (c *checker) reset(ctx context.Context) error {
	if err := c.awaitLine(); err != nil {
		return err
	}
	facts := map[string]any{}
	local, others, err := c.client.ListDevices(ctx)
	if err != nil {
		return err
	}
	facts["devices"], facts["other devices"] = len(local), len(others)
	callable, err := c.sess.MakeCallable(ctx, nil, []string{"w/read"}, nil)
	if err != nil {
		return err
	}
	if err := callable.Close(); err != nil {
		return err
	}
	_, released := callable.Run(ctx, nil)
	facts["released"] = seen(released)
	if err := remote.Reset(ctx, c.client, nil, nil); err != nil {
		return err
	}
	_, old := c.steps(ctx, 0, 1)
	facts["old session"] = seen(old)
	fresh, err := c.client.NewSession(ctx, c.meta.GetGraphDef(), nil)
	if err != nil {
		return err
	}
	_, empty := fresh.Run(ctx, nil, []string{"w/read"}, nil)
	facts["empty"] = seen(empty)
	facts["closed"] = fmt.Sprint(c.sess.Close())
	say("reset", facts)
	return fresh.Close()
}

func (c *checker) awaitLine() error {
	_, err := c.stdin.ReadString('\n')
	return err
}
