package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// opTime is the time of the nodes of one op.
type opTime struct {
	op    string
	nodes int
	ms    float64
}

// printOps writes the time of each op in a training step: the least that each
// node took in so many traced steps, so that other work of the machine counts
// little.
func printOps(ctx context.Context, w io.Writer, sess *runtime.Session, feeds map[string]*ckptfmt.Tensor, steps int) error {
	least := map[string]int64{}
	for range steps {
		_, m, err := sess.RunWithOptions(ctx, &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_FULL_TRACE}, feeds, nil, []string{"train"})
		if err != nil {
			return err
		}
		for _, n := range m.GetStepStats().GetDevStats()[0].GetNodeStats() {
			before, ok := least[n.GetTimelineLabel()]
			if !ok {
				before = math.MaxInt64
			}
			least[n.GetTimelineLabel()] = min(before, n.GetOpEndRelNanos())
		}
	}
	byOp := map[string]*opTime{}
	for label, ns := range least {
		_, op, _ := strings.Cut(strings.TrimSuffix(label, "()"), " = ")
		if byOp[op] == nil {
			byOp[op] = &opTime{op: op}
		}
		byOp[op].nodes++
		byOp[op].ms += float64(ns) / 1e6
	}
	list := slices.SortedFunc(maps.Values(byOp), func(a, b *opTime) int { return cmp.Compare(b.ms, a.ms) })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "op\tnodes\tms")
	for _, t := range list {
		fmt.Fprintf(table, "%s\t%d\t%.3f\n", t.op, t.nodes, t.ms)
	}
	return table.Flush()
}
