package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
)

func experiment(metrics ...string) *tfpb.Summary_Value {
	e := new(tbpb.Experiment)
	for _, m := range metrics {
		e.MetricInfos = append(e.MetricInfos, &tbpb.MetricInfo{Name: &tbpb.MetricName{Group: "validation", Tag: m}, DisplayName: "shown"})
	}
	return summary.HParamsConfig(e)
}

func charts(all ...*tbpb.Chart) *tfpb.Summary_Value {
	return summary.CustomScalars(&tbpb.Layout{Category: []*tbpb.Category{{Title: "all", Chart: all}}})
}

func margin(value, lower, upper string) *tbpb.Chart {
	return summary.MarginChart("margin", &tbpb.MarginChartContent_Series{Value: value, Lower: lower, Upper: upper})
}

func mesh(tag, name string) *tfpb.Summary_Value {
	return summary.PluginTensor(tag, summary.PluginMesh, tfproto.Marshal(&tbpb.MeshPluginData{Name: name, Components: 14}), nil)
}

// TestRenamedElsewhere renames tags that values mention: pages find what they draw by
// what is said there.
func TestRenamedElsewhere(t *testing.T) {
	lines := func(exprs ...string) *tbpb.Chart { return summary.MultilineChart("lines", exprs...) }
	named := summary.Describe(summary.Scalar("loss", 1), "loss", "")
	for name, tc := range map[string]struct{ value, want *tfpb.Summary_Value }{
		"metrics":          {experiment("loss", "acc", "other"), experiment("train/loss", "top.1", "other")},
		"no metric":        {experiment("losses"), experiment("losses")},
		"line":             {charts(lines("acc")), charts(lines("acc", `top\.1$`))},
		"lines":            {charts(lines("loss.*", "acc$", "(")), charts(lines("loss.*", "acc$", "(", `top\.1$`, "train/loss$"))},
		"lines of all":     {charts(lines(".*")), charts(lines(".*"))},
		"line that has it": {charts(lines("los", "train")), charts(lines("los", "train"))},
		"margin":           {charts(margin("loss", "low", "acc")), charts(margin("train/loss", "low", "top.1"))},
		"mesh":             {mesh("body_VERTEX", "body"), mesh("ship/body_VERTEX", "ship/body")},
		"other mesh":       {mesh("body_VERTEX", "bodies"), mesh("ship/body_VERTEX", "bodies")},
		"part of a mesh":   {mesh("body_FACE", "body"), mesh("faces", "body")},
		"name to display":  {named, summary.Describe(summary.Scalar("train/loss", 1), "train/loss", "")},
	} {
		e := &edits{first: math.MinInt64, last: math.MaxInt64, rename: map[string]string{
			"loss": "train/loss", "acc": "top.1", "body_VERTEX": "ship/body_VERTEX", "body_FACE": "faces",
		}}
		data := tfproto.Marshal(&tfpb.Event{Step: 1, What: &tfpb.Event_Summary{Summary: summary.New(tc.value)}})
		out, keep, err := e.newRun().apply(data)
		if err != nil || !keep {
			t.Fatalf("%s: kept %v, %v", name, keep, err)
		}
		got := new(tfpb.Event)
		if err := proto.Unmarshal(out, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(summary.New(tc.want), got.GetSummary(), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if proto.Equal(tc.value, tc.want) && string(out) != string(data) {
			t.Errorf("%s: the event has other bytes, though nothing in it changes", name)
		}
	}
}
