package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// serveModel starts a server whose variables the test can reach, too.
func serveModel(t *testing.T) (target string, model *runtime.Resources, kill func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	model = &runtime.Resources{}
	server := master.New(&master.Options{Runtime: runtime.Options{Resources: model}})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "grpc://" + ln.Addr().String(), model, func() { server.Close() }
}

// growingLog is a log that a test waits on.
type growingLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

func newGrowingLog() *growingLog { return &growingLog{grown: make(chan struct{})} }

func (l *growingLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.grown)
	l.grown = make(chan struct{})
	return l.text.Write(b)
}

func (l *growingLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset forgets what the log has.
func (l *growingLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// await returns what the log has after the first text, once it has all of them
// in this order.
func (l *growingLog) await(t *testing.T, texts ...string) string {
	t.Helper()
	over := time.After(time.Minute)
	for {
		l.mu.Lock()
		grown, rest := l.grown, l.text.String()
		l.mu.Unlock()
		found := true
		for _, text := range texts {
			var has bool
			if _, rest, has = strings.Cut(rest, text); !has {
				found = false
				break
			}
		}
		if found {
			return rest
		}
		select {
		case <-grown:
		case <-over:
			t.Fatalf("the log lacks %q:\n%s", texts, l)
		}
	}
}

// process is a job that runs in this process.
type process struct {
	log   *growingLog
	stop  context.CancelFunc
	ended chan error
}

func startJob(t *testing.T, set []string) *process {
	t.Helper()
	c := clustersConfig(t, set...)
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{log: newGrowingLog(), stop: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- Run(ctx, c, RunOptions{Stdout: io.Discard, Stderr: p.log}) }()
	t.Cleanup(func() { p.end(t) })
	return p
}

// end stops the job, as SIGTERM does.
func (p *process) end(t *testing.T) {
	p.stop()
	err, running := <-p.ended
	if running && err != nil {
		t.Errorf("%v\n%s", err, p.log)
	}
	if running {
		close(p.ended)
	}
}

// ofTwo returns the settings of a task in a training of two.
func ofTwo(target, logdir string, task int, more ...string) []string {
	return append([]string{"master=" + target, "logdir=" + logdir, "cluster.workers=2", fmt.Sprint("cluster.task=", task),
		fmt.Sprint("supervisor.is_chief=", task == 0), "train.steps=1000000", "supervisor.recovery_wait_secs=0.1"}, more...)
}

// byHand is a chief whose parts the test calls.
type byHand struct {
	*job
	t    *testing.T
	sess session.Session
}

func chiefByHand(t *testing.T, set []string) *byHand {
	t.Helper()
	j, err := newJob(t.Context(), clustersConfig(t, set...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.close)
	if err := os.MkdirAll(j.config.Logdir, 0o777); err != nil {
		t.Fatal(err)
	}
	sess, err := j.sessions.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	return &byHand{j, t, sess}
}

// restore puts the first values into the model, and makes that known unless the
// model is to be taken for one that was adopted.
func (c *byHand) restore() {
	c.t.Helper()
	c.must(c.task.UntagModel(c.t.Context(), c.sess))
	c.run(c.program.Init...)
	c.begin(false)
}

// begin does what the chief does when its session has a model.
func (c *byHand) begin(adopted bool) {
	c.t.Helper()
	c.run(c.task.LocalInit()...)
	c.must(c.task.Publish(c.t.Context(), c.sess, cluster.NewReplicas(c.task), c.step(), adopted))
}

func (c *byHand) run(targets ...string) {
	c.t.Helper()
	if len(targets) == 0 {
		return
	}
	_, err := c.sess.Run(c.t.Context(), nil, nil, targets)
	c.must(err)
}

func (c *byHand) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *byHand) step() int64 {
	c.t.Helper()
	step, err := c.program.ReadStep(c.t.Context(), c.sess)
	c.must(err)
	return step
}

// awaitGradients waits until the second worker has given gradients.
func (c *byHand) awaitGradients() {
	c.t.Helper()
	for over := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		out, err := c.sess.Run(c.t.Context(), nil, []string{c.program.Sync.Left}, nil)
		c.must(err)
		counts, err := ckptfmt.Values[int32](out[0])
		c.must(err)
		if slices.Min(counts) > 0 {
			return
		}
		if time.Now().After(over) {
			c.t.Fatalf("accumulators have %d gradients", counts)
		}
	}
}

// TestWorkerSeesARestore: the model is put back while a worker trains on it.
func TestWorkerSeesARestore(t *testing.T) {
	t.Parallel()
	target, _, _ := serveModel(t)
	logdir := t.TempDir()
	chief := chiefByHand(t, ofTwo(target, logdir, 0))
	chief.restore()
	worker := startJob(t, ofTwo(target, logdir, 1))
	worker.log.await(t, "msg=training step=")
	chief.must(chief.task.UntagModel(t.Context(), chief.sess))
	worker.log.await(t, "session was lost", cluster.ErrReplaced.Message, "waiting for the chief")
	if before := chief.step(); before < 1 || chief.step() != before {
		t.Errorf("the worker made steps while the model was being restored, at %d", before)
	}
	chief.restore()
	worker.log.await(t, "waiting for the chief", "msg=training step=")
}

// TestWorkerWaitsForAFormerLife: a synchronous worker has given its gradients and
// waits for the update when the chief begins again. They are lost to the new
// life, and given again.
func TestWorkerWaitsForAFormerLife(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*byHand){
		"the chief restored the model": (*byHand).restore,
		"the chief adopted the model, and the update under way was lost": func(c *byHand) {
			c.run(c.program.Sync.Discard...)
			c.begin(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, _, kill := serveModel(t)
			logdir := t.TempDir()
			chief := chiefByHand(t, ofTwo(target, logdir, 0, "cluster.sync=true"))
			chief.restore()
			worker := startJob(t, ofTwo(target, logdir, 1, "cluster.sync=true"))
			chief.awaitGradients()
			begin(chief)
			worker.log.await(t, "session was lost", cluster.ErrReplaced.Message)
			chief.awaitGradients()
			worker.stop()
			kill() // it has no step to end
			// Which of the two the worker notices first is not known.
			if err := <-worker.ended; err != nil && !cluster.IsLost(err) {
				t.Errorf("%v\n%s", err, worker.log)
			}
			close(worker.ended)
		})
	}
}

// TestAdoptWithoutTheServerOfTheChief: the chief's server had nothing but the
// local step of its worker, and took that with it. The model is alive.
func TestAdoptWithoutTheServerOfTheChief(t *testing.T) {
	target, model, _ := serveModel(t)
	c := clustersConfig(t, "master="+target, "cluster.sync=true", "train.steps=20")
	runJob(t, t.Context(), c)
	for _, suffix := range []string{".index", ".data-00000-of-00001", ".meta"} {
		if err := os.Remove(filepath.Join(c.Logdir, "model.ckpt-20"+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	destroy(t, model, "sync_rep_local_step")
	c.Train.Steps = 40
	_, log := runJob(t, t.Context(), c)
	if !strings.Contains(log, "the model is alive") || !strings.Contains(log, "step=20") {
		t.Errorf("the chief began elsewhere:\n%s", log)
	}
	if lastStep(t, c) != 40 {
		t.Errorf("the last checkpoint is of step %d", lastStep(t, c))
	}
	destroy(t, model, "sync_rep_local_step")
	destroy(t, model, "global_step")
	c.Train.Steps = 50
	if _, log := runJob(t, t.Context(), c); !strings.Contains(log, "model.ckpt-40") || strings.Contains(log, "the model is alive") {
		t.Errorf("the model was taken for complete, or not restored:\n%s", log)
	}
}

// destroy takes a variable off a server.
func destroy(t *testing.T, model *runtime.Resources, name string) {
	t.Helper()
	handle := &tfpb.NodeDef{Name: "v", Op: "VarHandleOp", Attr: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_INT64),
		"shape": attr.Shape(graph.MakeShape().Proto()), "shared_name": attr.String(name)}}
	def := &tfpb.GraphDef{Node: []*tfpb.NodeDef{handle, {Name: "destroy", Op: "DestroyResourceOp", Input: []string{"v"}}}}
	sess, err := runtime.New(def, &runtime.Options{Resources: model})
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if _, err := sess.Run(t.Context(), nil, nil, []string{"destroy"}); err != nil {
		t.Fatal(err)
	}
}

// TestFirstTokensAreLost: the connection to the servers broke while the chief put
// in the first tokens, without which a replica gives one gradient and waits forever.
func TestFirstTokensAreLost(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			target, _, _ := serveModel(t)
			logdir := t.TempDir()
			set := func(task int) []string {
				return ofTwo(target, logdir, task, "cluster.sync=true", "cluster.replicas_to_aggregate=5", fmt.Sprint("cluster.workers=", workers))
			}
			chiefByHand(t, set(0)).restore()
			chief := startJob(t, set(0))
			for task := range workers - 1 {
				startJob(t, set(task+1))
			}
			chief.log.await(t, "the model is alive", "msg=saved step=1") // 10 or, on a slow machine, 18 or 117
		})
	}
}

// TestSynchronousWorkersBeginAgain: the chief, then both, stop and come back.
func TestSynchronousWorkersBeginAgain(t *testing.T) {
	t.Parallel()
	target, _, _ := serveModel(t)
	logdir := t.TempDir()
	start := func(task int) *process { return startJob(t, ofTwo(target, logdir, task, "cluster.sync=true")) }
	chief, worker := start(0), start(1)
	chief.log.await(t, "msg=saved step=10 ", "msg=saved")
	chief.end(t)
	chief = start(0)
	chief.log.await(t, "the model is alive", "msg=saved", "msg=saved")
	chief.end(t)
	worker.end(t)
	chief = start(0)
	start(1)
	chief.log.await(t, "the model is alive", "msg=saved", "msg=saved")
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := newGrowingLog()
		beat := &heartbeat{remote: true}
		log := slog.New(beat.wrap(slog.NewTextHandler(text, nil))).With("job", "x")
		end := beat.start(log)
		silence := func(d time.Duration, want string) {
			t.Helper()
			text.Reset()
			time.Sleep(d)
			synctest.Wait()
			if got := text.String(); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("after %v of silence the log says %q; want %q", d, got, want)
			}
		}
		silence(cluster.ReportEvery-beatEvery, "")
		silence(2*beatEvery, "still preparing")
		beat.setReason("the chief")
		silence(cluster.ReportEvery+beatEvery, `msg="still waiting" job=x for="the chief" since=`)
		beat.setStep(7)
		silence(cluster.ReportEvery+beatEvery, `msg="still at work" job=x last_step=7`)
		time.Sleep(cluster.ReportEvery - beatEvery)
		log.Info("a line")
		silence(cluster.ReportEvery-beatEvery, "")
		if cluster.ReportEvery+beatEvery > 30*time.Second {
			t.Error("the log may be silent for more than 30 s")
		}
		end()
	})
	var none *heartbeat // of what is not a training
	none.setReason("")
	none.setStep(1)
	none.start(nil)()
}

// TestHeartbeatOfSteps: a training that makes steps says so before the heartbeat
// would, on servers more often.
func TestHeartbeatOfSteps(t *testing.T) {
	for remote, lines := range map[bool]int{false: 9, true: 15} {
		synctest.Test(t, func(t *testing.T) {
			text := newGrowingLog()
			beat := &heartbeat{remote: remote}
			log := slog.New(beat.wrap(slog.NewTextHandler(text, nil)))
			defer beat.start(log)()
			show := &logProgress{log: log, longest: beat.between()}
			show.begin(0, 0, "")
			for step := range int64(300) {
				time.Sleep(time.Second)
				beat.setStep(step)
				show.step(step, 0.5)
			}
			if got := text.String(); strings.Contains(got, "still") || strings.Count(got, "msg=training ") < lines {
				t.Errorf("a log of 5 minutes:\n%s", got)
			}
		})
	}
}
