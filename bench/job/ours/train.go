//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/graph/optimizer"
	"github.com/trainerd/trainerd/trainerd/target"
)

const batchSize = 16

// train is our own training, under the library's Supervisor in one process.
func train(ctx context.Context, _ *options) (*measure.Result, error) {
	t, err := taskFromEnv()
	if err != nil {
		return nil, err
	}
	journal, err := os.OpenFile(t.journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	fmt.Fprintf(journal, "start %d %f\n", os.Getpid(), seconds(time.Now()))
	meta, err := perceptron(int64(t.width))
	if err != nil {
		return nil, err
	}
	sv := &trainerd.Supervisor{
		MetaGraph: meta, Open: target.Open, Logdir: t.logdir, SummaryOp: trainerd.None(),
		SaveModelEvery: -1, SaveModelSteps: int64(t.every), Saver: &trainerd.Saver{MaxToKeep: 2},
		OnSave: func(c trainerd.SavedCheckpoint) {
			fmt.Fprintf(journal, "save %f %f\n", c.Took.Seconds(), seconds(c.Time))
		},
	}
	return nil, sv.Run(ctx, func(ctx context.Context, sess trainerd.Session) error {
		for {
			step, err := trainerd.FetchScalar[int64](ctx, sess, "step:0")
			if err != nil {
				return err
			}
			if step >= int64(t.steps) {
				return finish(ctx, sess, journal)
			}
			begin := time.Now()
			x, err := batch(step, t.width)
			if err != nil {
				return err
			}
			if _, err := sess.Run(ctx, map[string]*ckptfmt.Tensor{"x:0": x}, nil, []string{"train"}); err != nil {
				return err
			}
			fmt.Fprintf(journal, "step %d %f %f\n", step+1, seconds(begin), seconds(time.Now()))
		}
	})
}

// perceptron returns the graph: two layers, trained by Adam to shift their input.
func perceptron(width int64) (*tfpb.MetaGraphDef, error) {
	b := graph.NewBuilder()
	step := b.GlobalStep()
	b.Identity("step", b.Read("", step))
	float := tfpb.DataType_DT_FLOAT
	weights := func(name string, seed int64) *graph.Variable {
		initial := graph.GlorotUniform(graph.Seeds{Graph: 1, Op: seed})
		return b.Variable(graph.VariableSpec{Name: name, DType: float, Shape: graph.MakeShape(width, width), Initial: initial, Trainable: true})
	}
	w, v := weights("w", 1), weights("v", 2)
	x := b.Placeholder("x", float, graph.MakeShape(batchSize, width))
	hidden := b.Relu("hidden", b.MatMul("", x, b.Read("w_value", w), false, false))
	miss := b.Sub("miss", b.MatMul("", hidden, b.Read("v_value", v), false, false), x)
	loss := b.Mul("loss", b.L2Loss("", miss), b.Const("scale", literal.Float(2/float32(batchSize*width))))
	rate := optimizer.LearningRate{Initial: 1e-4}
	update, _ := optimizer.Minimize(b, loss, optimizer.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, rate, step, []*graph.Variable{w, v})
	b.Group("train", update)
	return b.MetaGraph()
}

// batch returns the input of a step.
func batch(step int64, width int) (*ckptfmt.Tensor, error) {
	random := rand.New(rand.NewPCG(uint64(step), 1))
	values := make([]float32, batchSize*width)
	for i := range values {
		values[i] = float32(random.NormFloat64())
	}
	return ckptfmt.FromValues([]int64{batchSize, int64(width)}, values)
}

// finish notes the digest of the weights.
func finish(ctx context.Context, sess trainerd.Session, journal *os.File) error {
	tensors, err := sess.Run(ctx, nil, []string{"w_value:0", "v_value:0"}, nil)
	if err != nil {
		return err
	}
	digest := sha256.New()
	for _, t := range tensors {
		digest.Write(t.Data)
	}
	_, err = fmt.Fprintf(journal, "end %x\n", digest.Sum(nil))
	return err
}
