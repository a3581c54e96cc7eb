package daemon

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/optimizer"
)

// noisyGraph writes a model with all that an evaluation could disturb: a random
// op in the loss, variables that an evaluated tensor assigns, and a moving
// average.
func noisyGraph(t *testing.T, seed int64) string {
	t.Helper()
	const float = tfpb.DataType_DT_FLOAT
	b := graph.NewBuilder()
	step := b.GlobalStep()
	x := b.Placeholder("x", float, graph.MakeShape(-1, 2))
	w := b.Variable(graph.VariableSpec{Name: "w", DType: float, Shape: graph.MakeShape(2, 2), Initial: graph.Zeros(), Trainable: true})
	average := b.Variable(graph.VariableSpec{Name: "average", DType: float, Initial: graph.Zeros()})
	total := b.Variable(graph.VariableSpec{Name: "total", DType: float, Initial: graph.Zeros()})
	seeds := graph.Attrs{"T": attr.Type(tfpb.DataType_DT_INT32), "dtype": attr.Type(float), "seed": attr.Int(seed), "seed2": attr.Int(seed)}
	logits := b.MatMul("logits", x, b.Read("w/read", w), false, false)
	noise := b.Add(graph.NodeSpec{Op: "RandomStandardNormal", Name: "noise", Inputs: []graph.Output{b.ShapeOf("shape", logits)}, Attrs: seeds,
		Outputs: []graph.OutputType{{DType: float, Shape: logits.Shape()}}}).Output(0)
	noise = b.StopGradient("still", noise)
	loss := b.Mean("loss", b.Square("square", b.AddV2("noisy", logits, noise)))
	b.Identity("first_noise", b.Mean("mean_noise", noise))
	move := b.MoveAverage("move", average, loss, .1)
	b.After([]*graph.Node{move}, func() { b.Identity("moved", loss) })
	add := b.Add(graph.NodeSpec{Op: "AssignAddVariableOp", Name: "add", Inputs: []graph.Output{total.Handle(), loss}, Attrs: graph.Attrs{"dtype": attr.Type(float)}})
	b.After([]*graph.Node{add}, func() { b.Read("streaming", total) })
	optimizer.Minimize(b, loss, optimizer.SGD{}, optimizer.LearningRate{Initial: .01}, step, []*graph.Variable{w}, move)
	return modelFile(t, b)
}

const noisyJob = `logdir = %q
[data]
file = %q
test_rows = 6
batch_size = 4
[graph]
meta = %q
loss = "loss"
feeds = { x = "features" }
[train]
steps = 30
[eval]
fetches = ["loss", "moved", "streaming", "first_noise"]
batch_size = 2
[supervisor]
save_model_secs = 1000
save_summaries_secs = 0
max_to_keep = 0
`

// noisyConfig is a job of a noisyGraph.
func noisyConfig(t *testing.T, meta string, overrides ...string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	data, name := filepath.Join(dir, "clusters.csv"), filepath.Join(dir, "job.toml")
	for file, text := range map[string]string{data: clusters(40), name: fmt.Sprintf(noisyJob, filepath.Join(dir, "logs"), data, meta)} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var all []config.Override
	for _, o := range overrides {
		all = append(all, config.Override{Flag: "--set " + o, Assignment: o})
	}
	c, err := config.Load(name, all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lastModel returns the bytes of the checkpoint of a step.
func lastModel(t *testing.T, c *config.Config, step int) (index, data []byte) {
	t.Helper()
	prefix := filepath.Join(c.Logdir, fmt.Sprintf("model.ckpt-%d", step))
	index, err := os.ReadFile(prefix + ".index")
	if err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(prefix + ".data-00000-of-00001"); err != nil {
		t.Fatal(err)
	}
	return index, data
}

// TestNothingButTheTrainingChangesTheWeights holds runs under random
// configurations against one that evaluates, saves and writes nothing before
// its end, on each kind of session. The seed of a configuration is its name.
func TestNothingButTheTrainingChangesTheWeights(t *testing.T) {
	for _, kind := range []struct {
		name   string
		master func(t *testing.T) string
		seeds  uint64
	}{
		{"embedded", func(*testing.T) string { return "" }, 16},
		{"served", func(*testing.T) string { return "local" }, 4},
		{"remote", func(t *testing.T) string { return "grpc://" + serveMaster(t) }, 5},
	} {
		t.Run(kind.name, func(t *testing.T) {
			meta := noisyGraph(t, 7)
			master := "master='" + kind.master(t) + "'"
			plain := noisyConfig(t, meta, master)
			runJob(t, t.Context(), plain)
			index, data := lastModel(t, plain, 30)
			for seed := range kind.seeds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					r := rand.New(rand.NewPCG(seed, 0))
					overrides := harmless(r)
					c := noisyConfig(t, meta, append(overrides, master)...)
					if r.IntN(2) == 0 && !c.IsRemote() { // servers do not keep the streams of a session that has ended
						interrupt(t, c, r.IntN(12))
					}
					watched(t, c, r.IntN(2) == 0)
					if i, d := lastModel(t, c, 30); !bytes.Equal(i, index) || !bytes.Equal(d, data) {
						t.Errorf("the model is another one with %s", strings.Join(overrides, " "))
					}
				})
			}
		})
	}
}

// harmless returns settings that must not matter to the weights.
func harmless(r *rand.Rand) (overrides []string) {
	maybe := func(key string, values ...string) {
		if r.IntN(2) == 0 {
			overrides = append(overrides, key+"="+values[r.IntN(len(values))])
		}
	}
	maybe("eval.steps", "1", "2", "3", "7", "29", "30")
	maybe("eval.secs", "0.000001", "0.001", "0.01")
	maybe("eval.keep_best", "1", "3")
	maybe("eval.batch_size", "1", "4", "100")
	maybe("eval.fetches", "['loss']", "['first_noise']", "['streaming', 'loss']", "['moved']")
	maybe("supervisor.save_model_secs", "0.0001", "0.003")
	maybe("supervisor.save_model_steps", "1", "4", "10")
	maybe("supervisor.save_summaries_steps", "1", "5")
	maybe("supervisor.save_summaries_secs", "0.0001", "0.01")
	maybe("supervisor.max_to_keep", "1", "3")
	maybe("graph.fetches", "['first_noise', 'loss']", "['w']")
	return overrides
}

// interrupt runs a job until it has saved a step.
func interrupt(t *testing.T, c *config.Config, step int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &stopAfter{text: fmt.Sprintf("msg=saved step=%d ", step), cancel: cancel}
	if err := Run(ctx, c, RunOptions{Stdout: &bytes.Buffer{}, Stderr: log}); err != nil {
		t.Fatal(err)
	}
}

// watched runs a job to its end while others ask how it does, or alone.
func watched(t *testing.T, c *config.Config, ask bool) {
	t.Helper()
	monitor := control.NewMonitor(c.Name, c.Logdir, os.Getpid())
	ended := make(chan struct{})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for ask {
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
				monitor.Status()
				if job, err := monitor.Job(); err == nil {
					job.Save(t.Context()) // it may have ended
				}
			}
		}
	}()
	err := Run(t.Context(), c, RunOptions{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Terminal: ask, Monitor: monitor})
	close(ended)
	<-asked
	if err != nil {
		t.Fatal(err)
	}
}

// TestEvaluationIsRepeatable evaluates one model several times: the numbers are
// the same each time, and others than at another step, also where the graph
// asks for other numbers at each run.
func TestEvaluationIsRepeatable(t *testing.T) {
	for _, seed := range []int64{7, 0} {
		c := noisyConfig(t, noisyGraph(t, seed), "train.steps=2")
		runJob(t, t.Context(), c)
		var results []string
		for _, steps := range []int64{2, 2, 3} {
			c.Train.Steps = steps
			runJob(t, t.Context(), c)
			j, err := newJob(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer j.close()
			s, err := j.probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.sess.Close()
			for range 2 {
				e, err := j.tester.evaluate(t.Context(), s.sess)
				if err != nil {
					t.Fatal(err)
				}
				noise, _ := e.value("first_noise")
				results = append(results, fmt.Sprint(noise))
			}
		}
		for i, r := range results[:4] {
			if r != results[0] {
				t.Errorf("seed %d: evaluation %d of step 2 gives %s, the first gave %s", seed, i, r, results[0])
			}
		}
		if results[4] == results[0] {
			t.Errorf("seed %d: the evaluation of step 3 draws what that of step 2 drew", seed)
		}
	}
}
