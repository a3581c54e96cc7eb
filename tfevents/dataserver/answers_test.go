package dataserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// large is a blob that takes two messages.
var large = bytes.Repeat([]byte("large"), blobChunk/4)

// twoRuns serves a run with curves of several kinds, and one with images.
func twoRuns(t *testing.T, samples map[string]int) *client {
	t.Helper()
	dir := t.TempDir()
	histogram, err := summary.Histogram("histogram", []float64{1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	double := func(v float64) *tfpb.Summary_Value {
		x := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, TensorShape: &tfpb.TensorShapeProto{}, DoubleVal: []float64{v}}
		return summary.PluginTensor("double", summary.PluginScalars, nil, x)
	}
	for step := range int64(5) {
		named := summary.Describe(summary.Scalar("acc", float64(step)), "accuracy", "of the test")
		appendEvents(t, filepath.Join(dir, "a", "1.tfevents"), point("loss", step, float64(10-step)),
			&tfpb.Event{WallTime: 1, Step: step, What: &tfpb.Event_Summary{Summary: summary.New(named, histogram, double(0.5))}})
	}
	for step, blobs := range [][][]byte{{[]byte("first")}, {[]byte("second"), large}} {
		x := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeOf(int64(2 + len(blobs))), StringVal: append([][]byte{[]byte("8"), []byte("9")}, blobs...)}
		appendEvents(t, filepath.Join(dir, "b", "1.tfevents"), &tfpb.Event{WallTime: 2, Step: int64(step),
			What: &tfpb.Event_Summary{Summary: summary.New(summary.PluginTensor("image<1>", summary.PluginImages, nil, x))}})
	}
	c := serve(t, &Options{Logdir: dir, Reload: -1, Samples: samples})
	c.waitFor("the runs", func() bool {
		runs := new(tbdata.ListRunsResponse)
		return c.call("ListRuns", &tbdata.ListRunsRequest{}, runs) == nil && len(runs.Runs) == 2
	})
	return c
}

func filter(plugin string) *tbdata.PluginFilter { return &tbdata.PluginFilter{PluginName: plugin} }

// TestLists has what the lists say of each series.
func TestLists(t *testing.T) {
	c := twoRuns(t, nil)
	var plugins tbdata.ListPluginsResponse
	var of tbdata.GetExperimentResponse
	var runs tbdata.ListRunsResponse
	var scalars tbdata.ListScalarsResponse
	var tensors tbdata.ListTensorsResponse
	var blobs tbdata.ListBlobSequencesResponse
	if err := errors.Join(
		c.call("ListPlugins", &tbdata.ListPluginsRequest{}, &plugins), c.call("ListRuns", &tbdata.ListRunsRequest{}, &runs),
		c.call("GetExperiment", &tbdata.GetExperimentRequest{}, &of),
		c.call("ListScalars", &tbdata.ListScalarsRequest{PluginFilter: filter(summary.PluginScalars)}, &scalars),
		c.call("ListTensors", &tbdata.ListTensorsRequest{PluginFilter: filter(summary.PluginHistograms)}, &tensors),
		c.call("ListBlobSequences", &tbdata.ListBlobSequencesRequest{PluginFilter: filter(summary.PluginImages)}, &blobs),
	); err != nil {
		t.Fatal(err)
	}
	var got []string
	add := func(parts ...any) { got = append(got, strings.TrimSpace(fmt.Sprintln(parts...))) }
	for _, p := range plugins.Plugins {
		add("plugin", p.Name)
	}
	for _, r := range runs.Runs {
		add("run", r.Name, r.StartTime)
	}
	for _, r := range scalars.Runs {
		for _, x := range r.Tags {
			m := x.GetMetadata()
			add(r.RunName, x.TagName, m.MaxStep, m.MaxWallTime > 0, m.SummaryMetadata.GetDisplayName(), m.SummaryMetadata.GetSummaryDescription())
		}
	}
	for _, r := range tensors.Runs {
		for _, x := range r.Tags {
			add(r.RunName, x.TagName, x.GetMetadata().MaxStep, x.GetMetadata().MaxWallTime)
		}
	}
	for _, r := range blobs.Runs {
		for _, x := range r.Tags {
			add(r.RunName, x.TagName, x.GetMetadata().MaxStep, x.GetMetadata().MaxWallTime, x.GetMetadata().MaxLength)
		}
	}
	want := []string{"plugin scalars", "plugin histograms", "plugin images", "run a 1", "run b 2",
		"a loss 4 true", "a acc 4 true accuracy of the test", "a double 4 true", "a histogram 4 1", "b image<1> 1 2 4"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !filepath.IsAbs(of.DataLocation) {
		t.Errorf("the data are at %q", of.DataLocation)
	}
}

// TestReads has the values, all of them and those that a request picks.
func TestReads(t *testing.T) {
	for _, tc := range []struct {
		name    string
		samples map[string]int
		points  int64
		filter  *tbdata.RunTagFilter
		want    string // scalars; then steps of tensors
	}{
		{"all", nil, 100, nil, "loss [0 1 2 3 4] [10 9 8 7 6], acc [0 1 2 3 4] [0 1 2 3 4], double [0 1 2 3 4] [0.5 0.5 0.5 0.5 0.5]; [0 1 2 3 4]"},
		{"few", nil, 2, nil, "loss [0 4] [10 6], acc [0 4] [0 4], double [0 4] [0.5 0.5]; [0 4]"},
		{"one", nil, 1, nil, "loss [4] [6], acc [4] [4], double [4] [0.5]; [4]"},
		{"none", nil, 0, nil, "loss [] [], acc [] [], double [] []; []"},
		{"no samples", map[string]int{summary.PluginScalars: 0}, 100, nil, "loss [] [], acc [] [], double [] []; [0 1 2 3 4]"},
		{"one tag", nil, 1, &tbdata.RunTagFilter{Tags: &tbdata.TagFilter{Names: []string{"acc", "x"}}}, "acc [4] [4]; "},
		{"another run", nil, 1, &tbdata.RunTagFilter{Runs: &tbdata.RunFilter{Names: []string{"b"}}}, "; "},
		{"a run", nil, 1, &tbdata.RunTagFilter{Runs: &tbdata.RunFilter{Names: []string{"a"}}, Tags: &tbdata.TagFilter{Names: []string{"histogram"}}}, "; [4]"},
	} {
		c := twoRuns(t, tc.samples)
		var scalars tbdata.ReadScalarsResponse
		var tensors tbdata.ReadTensorsResponse
		down := &tbdata.Downsample{NumPoints: tc.points}
		if err := errors.Join(
			c.call("ReadScalars", &tbdata.ReadScalarsRequest{PluginFilter: filter(summary.PluginScalars), Downsample: down, RunTagFilter: tc.filter}, &scalars),
			c.call("ReadTensors", &tbdata.ReadTensorsRequest{PluginFilter: filter(summary.PluginHistograms), Downsample: down, RunTagFilter: tc.filter}, &tensors),
		); err != nil {
			t.Fatal(err)
		}
		var got, steps []string
		for _, r := range scalars.Runs {
			for _, x := range r.Tags {
				got = append(got, fmt.Sprint(x.TagName, " ", x.GetData().GetStep(), " ", x.GetData().GetValue()))
			}
		}
		for _, r := range tensors.Runs {
			for _, x := range r.Tags {
				steps = append(steps, fmt.Sprint(x.GetData().GetStep()))
				if len(x.GetData().GetValue()) != len(x.GetData().GetStep()) || len(x.GetData().GetWallTime()) != len(x.GetData().GetStep()) {
					t.Errorf("%s: %v", tc.name, x)
				}
			}
		}
		if text := strings.Join(got, ", ") + "; " + strings.Join(steps, ", "); text != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, text, tc.want)
		}
	}
}

// blob reads a blob by its key.
func (c *client) blob(key string) (all []byte, messages int, err error) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	stream, err := c.conn.NewStream(ctx, &service.Streams[0], "/"+ServiceName+"/ReadBlob", grpc.MaxCallRecvMsgSize(maxAnswer))
	if err == nil {
		err = errors.Join(stream.SendMsg(&tbdata.ReadBlobRequest{BlobKey: key}), stream.CloseSend())
	}
	for err == nil {
		answer := new(tbdata.ReadBlobResponse)
		if err = stream.RecvMsg(answer); err == nil {
			all, messages = append(all, answer.GetData()...), messages+1
		}
	}
	if err == io.EOF {
		err = nil
	}
	return all, messages, err
}

func TestBlobs(t *testing.T) {
	c := twoRuns(t, nil)
	answer := new(tbdata.ReadBlobSequencesResponse)
	req := &tbdata.ReadBlobSequencesRequest{ExperimentId: "e", PluginFilter: filter(summary.PluginImages), Downsample: &tbdata.Downsample{NumPoints: 10}}
	if err := c.call("ReadBlobSequences", req, answer); err != nil {
		t.Fatal(err)
	}
	data := answer.GetRuns()[0].GetTags()[0].GetData()
	if len(data.GetStep()) != 2 || data.GetWallTime()[1] != 2 {
		t.Fatalf("%v", data)
	}
	refs := data.GetValues()[1].GetBlobRefs()
	for i, want := range [][]byte{[]byte("8"), []byte("9"), []byte("second"), large} {
		got, messages, err := c.blob(refs[i].GetBlobKey())
		if err != nil || !bytes.Equal(got, want) || messages != 1+len(want)/blobChunk {
			t.Errorf("blob %d: %d bytes in %d messages, %v", i, len(got), messages, err)
		}
	}
	if text, err := base64.RawURLEncoding.DecodeString(refs[2].GetBlobKey()); err != nil || string(text) != `["e","b","image<1>",1,2]` {
		t.Errorf("the key is %s, %v", text, err)
	}
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for key, want := range map[string]codes.Code{
		"*": codes.InvalidArgument, encoded("["): codes.InvalidArgument, encoded(`["e","b","t",1]`): codes.InvalidArgument,
		encoded(`["e","b","image<1>",1,2,0]`):           codes.OK,
		encoded(`["e","b","image<1>",1,2,7]`):           codes.NotFound,
		encoded(`["e","b","image<1>",1,2,0,0]`):         codes.InvalidArgument,
		encoded(`["e","b","t",1,"x",0]`):                codes.InvalidArgument,
		blobKey{"", "c", "image<1>", 1, 0, 0}.String():  codes.NotFound,
		blobKey{"", "b", "image", 1, 0, 0}.String():     codes.NotFound,
		blobKey{"", "a", "histogram", 1, 0, 0}.String(): codes.NotFound,
		blobKey{"", "b", "image<1>", 7, 0, 0}.String():  codes.NotFound,
		blobKey{"", "b", "image<1>", 1, -1, 0}.String(): codes.NotFound,
		blobKey{"", "b", "image<1>", 1, 4, 0}.String():  codes.NotFound,
		blobKey{"", "b", "image<1>", 1, 2, 0}.String():  codes.OK,
	} {
		if _, _, err := c.blob(key); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
}

// TestSeveralKindsUnderOneTag serves tags as programs write them that log a histogram, or
// images, and a number under one name. The first value says what the tag is.
func TestSeveralKindsUnderOneTag(t *testing.T) {
	histogram, err := summary.Histogram("h", []float64{1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	image := func(text string) *tfpb.Summary_Value {
		return summary.PluginTensor("i", summary.PluginImages, nil,
			&tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeOf(3), StringVal: [][]byte{[]byte("1"), []byte("1"), []byte(text)}})
	}
	file := filepath.Join(t.TempDir(), "1.tfevents")
	for step := range int64(3) {
		for _, v := range []*tfpb.Summary_Value{histogram, image("other"), image(fmt.Sprint(step)), summaryv1.Scalar("h", 1), summaryv1.Scalar("i", 1)} {
			appendEvents(t, file, &tfpb.Event{WallTime: 1, Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}})
		}
	}
	appendEvents(t, file, point("h", 3, 1))
	c := serve(t, &Options{Logdir: filepath.Dir(file), Reload: -1})
	var tensors tbdata.ReadTensorsResponse
	c.waitFor("the tags", func() bool {
		req := &tbdata.ReadTensorsRequest{PluginFilter: filter(summary.PluginHistograms), Downsample: &tbdata.Downsample{NumPoints: 10}}
		return c.call("ReadTensors", req, &tensors) == nil && len(tensors.Runs) == 1
	})
	if data := tensors.Runs[0].Tags[0].GetData(); fmt.Sprint(data.Step) != "[0 1 2]" || len(data.Value) != 3 || len(data.WallTime) != 3 {
		t.Errorf("histograms: %v", data)
	}
	var list tbdata.ListBlobSequencesResponse
	var blobs tbdata.ReadBlobSequencesResponse
	images := filter(summary.PluginImages)
	if err := errors.Join(c.call("ListBlobSequences", &tbdata.ListBlobSequencesRequest{PluginFilter: images}, &list),
		c.call("ReadBlobSequences", &tbdata.ReadBlobSequencesRequest{PluginFilter: images, Downsample: &tbdata.Downsample{NumPoints: 10}}, &blobs)); err != nil {
		t.Fatal(err)
	}
	if n := list.Runs[0].Tags[0].GetMetadata().GetMaxLength(); n != 3 {
		t.Errorf("the longest sequence has %d blobs", n)
	}
	data := blobs.Runs[0].Tags[0].GetData()
	for i, sequence := range data.GetValues() {
		key := sequence.GetBlobRefs()[2].GetBlobKey()
		got, _, err := c.blob(key)
		if err != nil || string(got) != fmt.Sprint(data.Step[i]) {
			t.Errorf("image of step %d: %q, %v", data.Step[i], got, err)
		}
		if parts, err := base64.RawURLEncoding.DecodeString(key); err != nil || bytes.Count(parts, []byte(",")) != 4 {
			t.Errorf("the key of step %d is not that of TensorBoard's data server: %s, %v", data.Step[i], parts, err)
		}
	}
	if fmt.Sprint(data.GetStep()) != "[0 1 2]" {
		t.Errorf("images at steps %v", data.GetStep())
	}
}

// TestImagesOfOneStep has a program whose steps begin again in each epoch: each image is its own, although
// several have the same step.
func TestImagesOfOneStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "1.tfevents")
	var want []string
	for i, step := range []int64{0, 1, 0, 1} {
		text := fmt.Sprint("image ", i)
		want = append(want, text)
		x := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeOf(3), StringVal: [][]byte{[]byte("1"), []byte("1"), []byte(text)}}
		appendEvents(t, file, &tfpb.Event{WallTime: 1.7e9 + float64(i), Step: step,
			What: &tfpb.Event_Summary{Summary: summary.New(summary.PluginTensor("i", summary.PluginImages, nil, x))}})
	}
	c := serve(t, &Options{Logdir: filepath.Dir(file), Reload: -1})
	var blobs tbdata.ReadBlobSequencesResponse
	c.waitFor("the images", func() bool {
		req := &tbdata.ReadBlobSequencesRequest{PluginFilter: filter(summary.PluginImages), Downsample: &tbdata.Downsample{NumPoints: 10}}
		return c.call("ReadBlobSequences", req, &blobs) == nil && len(blobs.Runs) == 1
	})
	var got []string
	for _, sequence := range blobs.Runs[0].Tags[0].GetData().GetValues() {
		blob, _, err := c.blob(sequence.GetBlobRefs()[2].GetBlobKey())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(blob))
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestLastOfEachStep has several points in a row at one step: the last is shown, of numbers and of other kinds.
func TestLastOfEachStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "1.tfevents")
	for i, step := range []int64{1, 1, 2, 2, 2} {
		text := summary.PluginTensor("t", summary.PluginText, nil,
			&tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeOf(1), StringVal: [][]byte{fmt.Append(nil, i)}})
		appendEvents(t, file, point("loss", step, float64(i)),
			&tfpb.Event{WallTime: 1.7e9 + float64(i), Step: step, What: &tfpb.Event_Summary{Summary: summary.New(text)}})
	}
	c := serve(t, &Options{Logdir: filepath.Dir(file), Reload: -1})
	c.waitForSteps(".", "loss", 1, 2)
	if data := c.curve(".", "loss", 10); fmt.Sprint(data.GetValue()) != "[1 4]" {
		t.Errorf("the numbers are %v", data.GetValue())
	}
	var tensors tbdata.ReadTensorsResponse
	if err := c.call("ReadTensors", &tbdata.ReadTensorsRequest{PluginFilter: filter(summary.PluginText), Downsample: &tbdata.Downsample{NumPoints: 10}}, &tensors); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, v := range tensors.Runs[0].Tags[0].GetData().GetValue() {
		texts = append(texts, string(v.GetStringVal()[0]))
	}
	if fmt.Sprint(texts) != "[1 4]" {
		t.Errorf("the texts are %v", texts)
	}
}
