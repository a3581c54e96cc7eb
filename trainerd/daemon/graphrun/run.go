package graphrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// Options says what [Run] does with a graph. Names of tensors may leave
// out ":0".
type Options struct {
	// File is the MetaGraphDef, or a GraphDef, binary or text; or the folder of a
	// SavedModel, whose signature is run.
	File string
	// Signature is the key of the signature of a SavedModel; "" means
	// serving_default.
	Signature string

	// Restore is the prefix of the checkpoint to begin with. "" means to run
	// the graph's init op. The local init op and tables follow either.
	Restore string
	// Save is the prefix of the checkpoint to write at the end, "" for none.
	// In addition to its index and data come Save.meta, the graph with its saver, and
	// the directory's state file, in which the checkpoint becomes the newest;
	// the checkpoints that it had listed stay.
	Save string

	// Feeds is the prefix of a bundle whose key step_NNN/PLACEHOLDER, counted
	// from 000, has what step NNN is fed. "" means none.
	Feeds string
	// Feed are values for all steps, each NAME=FILE.npy.
	Feed []string
	// Fetch are the tensors to print, Target the ops to run as well. Without
	// both, the graph's train op is run.
	Fetch, Target []string
	// Steps is how often to run; negative means the number of steps in Feeds,
	// or once.
	Steps int

	// Master is where to run: "" in this process, grpc://host:port on a
	// TensorFlow server.
	Master string

	// MaxMemory bounds the memory of a session in this process, as the option of
	// the same name of package runtime does.
	MaxMemory int64

	JSON   bool      // print {"step":N,"fetches":{"NAME":value}} for each step
	Stdout io.Writer // what is fetched
	Stderr io.Writer // how it ended
}

// run is a call of Run.
type run struct {
	*Options
	g       *graphFile
	full    *graph.Graph // g, completed with init ops, saver and so on
	feeds   *feeder
	fetches []string // canonical names, as Fetch
	targets []string
	steps   int

	done  int  // steps made
	ended bool // the input did, before the last step
	saved bool
	line  []byte
}

// Run runs a graph step by step, with its queue runners, and prints what
// is fetched. It ends after the last step, when the input of the graph ends, or
// after the current step when ctx is done: all of them without an error. Names,
// feeds and ops that the runtime lacks are checked before anything runs.
func Run(ctx context.Context, o *Options) error {
	if savedmodel.Is(o.File) {
		return runSavedModel(ctx, o)
	}
	if o.Signature != "" {
		return argumentErrorf("--signature is for a SavedModel, and %s is not one", o.File)
	}
	r, err := newRun(o)
	if err != nil {
		return err
	}
	defer r.feeds.close()
	sv := &trainerd.Supervisor{
		MetaGraph:       r.full.Meta,
		SummaryOp:       trainerd.None(),
		GlobalStep:      trainerd.None(),
		NoSummaryWriter: true,
	}
	if sv.SessionManager, err = r.sessionManager(); err != nil {
		return err
	}
	train := func(trainCtx context.Context, sess session.Session) error {
		return r.train(ctx, trainCtx, sess, sv.Coordinator())
	}
	if err := sv.Run(ctx, train); err != nil {
		return err
	}
	r.report(ctx)
	return nil
}

// newRun reads the files and checks the names.
func newRun(o *Options) (*run, error) {
	r := &run{Options: o}
	var err error
	if r.g, err = loadGraph(o.File); err != nil {
		return nil, err
	}
	if o.Master != "" {
		if _, err := remote.ParseTarget(o.Master); err != nil {
			return nil, argumentErrorf("--master: %v", err)
		}
	}
	if err := r.checkSave(); err != nil {
		return nil, err
	}
	if err := r.resolve(); err != nil {
		return nil, err
	}
	if err := r.complete(); err != nil {
		return nil, err
	}
	if r.feeds, err = newFeeder(r.g, o); err != nil {
		return nil, err
	}
	if r.steps = o.Steps; r.steps < 0 {
		r.steps = r.feeds.count()
	}
	names := slices.Clone(r.fetches)
	for _, target := range r.targets {
		names = append(names, "^"+target)
	}
	if err := r.feeds.check(r.g, r.steps, names); err != nil {
		r.feeds.close()
		return nil, err
	}
	if err := r.makeSaveDir(); err != nil {
		r.feeds.close()
		return nil, err
	}
	return r, nil
}

// makeSaveDir makes the folder of the checkpoint before the first step: what
// cannot be saved should not be computed.
func (r *run) makeSaveDir() error {
	if r.Save == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.Save), 0o777); err != nil {
		return fmt.Errorf("--save %s: %w", r.Save, err)
	}
	return nil
}

// complete adds what the graph lacks to be run.
func (r *run) complete() error {
	var err error
	if r.full, err = r.g.Complete(); err != nil {
		return &program.FileError{File: r.File, Err: err}
	}
	return nil
}

// checkSave refuses to write over the graph that is run.
func (r *run) checkSave() error {
	if r.Save == "" {
		return nil
	}
	file, err := os.Stat(r.File)
	if err != nil {
		return err
	}
	meta, err := os.Stat(layout.MetaName(r.Save))
	if err == nil && os.SameFile(file, meta) {
		return argumentErrorf("--save %s: %s would be overwritten; save under another prefix", r.Save, r.File)
	}
	return nil
}

// resolve finds in the graph what is to be fetched and run.
func (r *run) resolve() error {
	seen := map[string]bool{}
	for _, name := range r.Fetch {
		tensor, err := r.g.fetched("--fetch", name)
		if err != nil {
			return err
		}
		if seen[name] {
			return argumentErrorf("--fetch %s: it is fetched twice", name)
		}
		seen[name] = true
		r.fetches = append(r.fetches, tensor)
	}
	for _, name := range r.Target {
		op, err := r.g.op("--target", name)
		if err != nil {
			return err
		}
		r.targets = append(r.targets, op)
	}
	if len(r.fetches)+len(r.targets) > 0 {
		return nil
	}
	op, among := r.g.trainOp()
	switch {
	case len(among) > 0:
		return argumentErrorf("%s has several ops that may make a step; say which to run with --target OP%s", r.File, suchAs(among))
	case op == "":
		return argumentErrorf("%s names no train op; say what to run with --target OP, or what to compute with --fetch NAME%s", r.File, suchAs(r.g.values()))
	}
	r.targets = []string{op}
	return nil
}

// sessionManager returns what makes the model ready for the first step.
func (r *run) sessionManager() (*trainerd.SessionManager, error) {
	m := &trainerd.SessionManager{
		NewSession:          r.newSession,
		InitOp:              opOf(r.full.InitOp()),
		LocalInitOp:         opOf(r.full.LocalInitOp()),
		ReadyForLocalInitOp: opOf(r.full.ReadyForLocalInitOp()),
		ReadyOp:             opOf(r.full.ReadyOp()),
	}
	if r.Restore == "" {
		return m, nil
	}
	m.Saver, m.CheckpointPath = r.saver(), r.Restore
	if r.Master == "" {
		return m, nil
	}
	var err error
	m.CheckpointPath, err = filepath.Abs(r.Restore) // the server runs in a directory of its own
	return m, err
}

// opOf returns the op that a collection names.
func opOf(name string) trainerd.Op {
	if name == "" {
		return trainerd.None()
	}
	return trainerd.Nodes(name)
}

// memoryFlag is what errors of sessions name as the place of their limit.
const memoryFlag = "--max-memory"

func (r *run) saver() *checkpoint.Saver {
	return &checkpoint.Saver{MetaGraph: r.full.Meta, MaxToKeep: -1}
}

// newSession makes the session at the master.
func (r *run) newSession(ctx context.Context) (session.Session, error) {
	if r.Master != "" {
		return (&target.Options{ServerDisk: true, MaxMemory: r.MaxMemory, MemoryOption: memoryFlag}).Open(ctx, r.Master, r.full.Meta)
	}
	sess, err := runtime.New(r.full.Meta.GetGraphDef(), r.runtimeOptions())
	if err != nil {
		return nil, &program.FileError{File: r.File, Err: err}
	}
	if err := r.checkOps(sess); err != nil {
		sess.Close()
		return nil, err
	}
	return sess, nil
}

// runtimeOptions returns the options of a session in this process. What ops print
// must not get between lines of JSON.
func (r *run) runtimeOptions() *runtime.Options {
	o := &runtime.Options{
		MaxMemory: r.MaxMemory, MemoryOption: memoryFlag, Stdout: r.Stdout, Stderr: r.Stderr,
		Logger: slog.New(slog.NewTextHandler(r.Stderr, nil)),
	}
	if r.JSON {
		o.Stdout = r.Stderr
	}
	return o
}

// checkOps reports all ops that the runtime lacks of those that the run needs.
func (r *run) checkOps(sess *runtime.Session) error {
	targets := slices.Clone(r.targets)
	first := []string{r.full.LocalInitOp(), r.full.ReadyForLocalInitOp(), r.full.ReadyOp()}
	if r.Restore == "" {
		first = append(first, r.full.InitOp())
	}
	for _, name := range first {
		if name != "" {
			targets = append(targets, name)
		}
	}
	runners, err := r.full.QueueRunners()
	if err != nil {
		return err
	}
	for _, q := range runners {
		targets = append(append(targets, q.GetEnqueueOpName()...), q.GetCloseOpName(), q.GetCancelOpName())
	}
	return sess.Check(r.feeds.names(0), r.fetches, targets)
}

// train runs the steps and saves. The end of the input, and the end of stop,
// which the user asks for, end it as the last step does. When a queue runner
// has failed, the coordinator reports it, and nothing is saved.
func (r *run) train(stop, ctx context.Context, sess session.Session, coord *coord.Coordinator) error {
	for r.done < r.steps && !r.ended && ctx.Err() == nil && stop.Err() == nil {
		err := r.step(ctx, sess)
		inputEnded := errors.Is(err, session.ErrOutOfRange)
		switch {
		case stop.Err() != nil && (inputEnded || errors.Is(err, session.ErrCancelled)):
			// It waited for a queue, which the stop has closed.
		case inputEnded:
			r.ended = true
		case err != nil:
			return fmt.Errorf("step %d: %w", r.done, err)
		default:
			r.done++
		}
	}
	if r.Save == "" || coord.Err() != nil {
		return nil
	}
	return r.save(context.WithoutCancel(ctx), sess)
}

func (r *run) step(ctx context.Context, sess session.Session) error {
	feeds, err := r.feeds.at(r.done)
	if err != nil {
		return err
	}
	out, err := sess.Run(ctx, feeds, r.fetches, r.targets)
	if err != nil {
		return err
	}
	if r.JSON {
		return r.printJSON(out)
	}
	return r.printText(out)
}

func (r *run) printJSON(out []*ckptfmt.Tensor) (err error) {
	b := fmt.Appendf(r.line[:0], `{"step":%d,"fetches":{`, r.done)
	for i, t := range out {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, r.Fetch[i]), ':')
		if b, err = appendJSON(b, t); err != nil {
			return fmt.Errorf("%s: %w", r.Fetch[i], err)
		}
	}
	r.line = append(b, "}}\n"...)
	_, err = r.Stdout.Write(r.line)
	return err
}

func (r *run) printText(out []*ckptfmt.Tensor) error {
	var b bytes.Buffer
	for i, t := range out {
		text, err := DescribeValue(t)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Fetch[i], err)
		}
		fmt.Fprintf(&b, "step %d: %s = %s\n", r.done, r.Fetch[i], text)
	}
	_, err := r.Stdout.Write(b.Bytes())
	return err
}

// save writes the checkpoint and keeps those that the state file lists.
func (r *run) save(ctx context.Context, sess session.Session) error {
	saver := r.saver()
	if state, err := ckptdir.ReadState(filepath.Dir(r.Save), nil); err == nil {
		saver.RecoverLastCheckpoints(state.GetAllModelCheckpointPaths())
	}
	_, err := saver.Save(ctx, sess, r.Save, -1)
	r.saved = err == nil
	return err
}

// report says how the run ended.
func (r *run) report(ctx context.Context) {
	steps := fmt.Sprintf("%d steps", r.done)
	if r.done == 1 {
		steps = "1 step"
	}
	how := ""
	switch {
	case r.ended:
		how = "; the input ended"
	case r.done < r.steps && ctx.Err() != nil:
		how = fmt.Sprintf(" of %d; stopped", r.steps)
	}
	if r.saved {
		how += "; saved " + r.Save
	}
	fmt.Fprintf(r.Stderr, "%s%s\n", steps, how)
}
