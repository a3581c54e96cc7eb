package main

import (
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// A netSpec is a perceptron of bench/train/graphs.
type netSpec struct {
	sizes []int
	batch int
}

var nets = map[string]netSpec{
	"mlp784":  {sizes: []int{784, 256, 10}, batch: 128},
	"mlp1024": {sizes: []int{1024, 1024, 1024, 10}, batch: 256},
}

// uniform is the pseudo-random number of all contestants, in [0, 1).
func uniform(i int) float64 {
	h := uint32(i) * 2654435761
	h ^= h >> 15
	h *= 2246822519
	h ^= h >> 13
	return float64(h) / (1 << 32)
}

// floats returns a tensor of n elements around zero; salt makes it another.
func floats(salt int, scale float64, shape ...int64) *ckptfmt.Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: shape, Data: make([]byte, 4*n)}
	for i := range int(n) {
		v := float32((uniform(salt*1000003+i) - .5) * scale)
		binary.LittleEndian.PutUint32(t.Data[4*i:], math.Float32bits(v))
	}
	return t
}

// values returns the initial variables of a net.
func (n netSpec) values() []ckptfmt.NamedTensor {
	var list []ckptfmt.NamedTensor
	for i := range n.sizes[1:] {
		in, out := int64(n.sizes[i]), int64(n.sizes[i+1])
		list = append(list,
			ckptfmt.NamedTensor{Name: fmt.Sprint("w", i), Tensor: floats(i+1, 2*math.Sqrt(3/float64(in)), in, out)},
			ckptfmt.NamedTensor{Name: fmt.Sprint("b", i), Tensor: floats(0, 0, out)})
	}
	return append(list, ckptfmt.NamedTensor{Name: "global_step", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Data: make([]byte, 8)}})
}

// feeds returns the batch, which is the same in all steps.
func (n netSpec) feeds() []*ckptfmt.Tensor {
	y := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Shape: []int64{int64(n.batch)}, Data: make([]byte, 8*n.batch)}
	for i := range n.batch {
		y.Data[8*i] = byte(i % 10)
	}
	return []*ckptfmt.Tensor{floats(100, 1, int64(n.batch), int64(n.sizes[0])), y}
}

// warmUp is the number of steps before the clock starts.
const warmUp = 5

func net(ctx context.Context, o *options) (*measure.Result, error) {
	spec, ok := nets[o.net]
	if !ok {
		return nil, fmt.Errorf("no net %q", o.net)
	}
	sess, err := session(filepath.Join(o.area, "graphs", o.net+".meta"))
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	if err := sess.Restore(ctx, spec.values()); err != nil {
		return nil, err
	}
	train, err := sess.MakeCallable(ctx, []string{"x:0", "y:0"}, nil, []string{"train"})
	if err != nil {
		return nil, err
	}
	feeds := spec.feeds()
	r, err := trainSteps(ctx, train, o.steps, func(int) []*ckptfmt.Tensor { return feeds })
	if err != nil {
		return nil, err
	}
	out, err := sess.Run(ctx, map[string]*ckptfmt.Tensor{"x:0": feeds[0], "y:0": feeds[1]}, []string{"loss:0"}, nil)
	if err != nil {
		return nil, err
	}
	loss := math.Float32frombits(binary.LittleEndian.Uint32(out[0].Data))
	r.Work = fmt.Sprintf("%s, %d steps, loss %.3f", o.net, o.steps, loss)
	return r, nil
}

// trainSteps runs a train step: first the warm-up, then the steps that count.
func trainSteps(ctx context.Context, train *runtime.Callable, steps int, feeds func(step int) []*ckptfmt.Tensor) (*measure.Result, error) {
	best := time.Duration(math.MaxInt64)
	loop := func(from, to int) error {
		for i := from; i < to; i++ {
			begin := time.Now()
			if _, err := train.Run(ctx, feeds(i)); err != nil {
				return err
			}
			best = min(best, time.Since(begin))
		}
		return nil
	}
	if err := loop(0, warmUp); err != nil {
		return nil, err
	}
	r, err := timed(func() error { return loop(warmUp, warmUp+steps) })
	if err != nil {
		return nil, err
	}
	r.Metrics["steps_per_second"] = float64(steps) / r.Seconds
	r.Metrics["best_step_us"] = float64(best.Nanoseconds()) / 1e3
	return r, nil
}

func session(name string) (*runtime.Session, error) {
	data, err := readGraph(name)
	if err != nil {
		return nil, err
	}
	meta := &tfpb.MetaGraphDef{}
	if err := proto.Unmarshal(data, meta); err != nil {
		return nil, err
	}
	return runtime.New(meta.GetGraphDef(), nil)
}

// readGraph reads a file, which may be compressed.
func readGraph(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !strings.HasSuffix(name, ".gz") {
		return io.ReadAll(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
