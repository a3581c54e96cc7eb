package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// networkFeed is what a network of bench/train/graphs is fed: integers below
// the limit, or without one numbers around zero.
type networkFeed struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Limit int     `json:"limit"`
	Scale float64 `json:"scale"`
}

func (f networkFeed) value(salt int) *ckptfmt.Tensor {
	if f.Limit == 0 {
		return floats(salt, f.Scale, f.Shape...)
	}
	n := 1
	for _, d := range f.Shape {
		n *= int(d)
	}
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT32, Shape: f.Shape, Data: make([]byte, 4*n)}
	for i := range n {
		binary.LittleEndian.PutUint32(t.Data[4*i:], uint32(uniform(salt*1000003+i)*float64(f.Limit)))
	}
	return t
}

// networkFeeds returns what networks.json says of a network.
func networkFeeds(graphs, name string) ([]networkFeed, error) {
	text, err := os.ReadFile(filepath.Join(graphs, "networks.json"))
	if err != nil {
		return nil, err
	}
	var all map[string][]networkFeed
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if all[name] == nil {
		return nil, fmt.Errorf("no network %q", name)
	}
	return all[name], nil
}

// network trains a whole network of bench/train/graphs on one batch.
func network(ctx context.Context, o *options) (*measure.Result, error) {
	graphs := filepath.Join(o.area, "graphs")
	list, err := networkFeeds(graphs, o.net)
	if err != nil {
		return nil, err
	}
	var names []string
	var feeds []*ckptfmt.Tensor
	named := map[string]*ckptfmt.Tensor{}
	for i, f := range list {
		names, feeds = append(names, f.Name), append(feeds, f.value(i+1))
		named[f.Name] = feeds[i]
	}
	sess, err := session(filepath.Join(graphs, o.net+".meta.gz"))
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []string{"init"}); err != nil {
		return nil, err
	}
	train, err := sess.MakeCallable(ctx, names, nil, []string{"train"})
	if err != nil {
		return nil, err
	}
	if o.ops {
		if err := printOps(ctx, os.Stderr, sess, named, o.steps); err != nil {
			return nil, err
		}
	}
	r, err := trainSteps(ctx, train, o.steps, func(int) []*ckptfmt.Tensor { return feeds })
	if err != nil {
		return nil, err
	}
	out, err := sess.Run(ctx, named, []string{"loss:0"}, nil)
	if err != nil {
		return nil, err
	}
	loss := math.Float32frombits(binary.LittleEndian.Uint32(out[0].Data))
	r.Work = fmt.Sprintf("%s, %d steps, loss %.2f", o.net, o.steps, loss)
	return r, nil
}
