package tfevents_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/projector"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

const (
	goldenTag      = "train/loss"
	goldenText     = "hello *world*\n\n| a | b |\n|---|---|\n| 1 | 2 |"
	goldenLog      = "log \"line\" é"
	goldenMarkdown = "**md** <b>"
	goldenRate     = 44100
)

var goldenHParams = map[string]any{"lr": 0.01, "opt": "adam", "bn": true, "layers": 3}

// must returns a value that is expected to be right.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// one collects values into a summary.
func one(v ...*tfpb.Summary_Value) []*tfpb.Summary_Value { return v }

// linearFloats returns n float32 values from lo to hi, rounded as numpy does.
func linearFloats(lo, hi float64, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(lo + float64(float64(i)*((hi-lo)/float64(n-1))))
	}
	out[n-1] = float32(hi)
	return out
}

// uint16s returns n values of the generator as numbers.
func uint16s(seed uint64, n int) []int {
	b := eventstest.Splitmix(seed, 2*n)
	out := make([]int, n)
	for i := range out {
		out[i] = int(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return out
}

func fixtureHistogram(seed uint64, n, mod, shift int, scale float64) []float64 {
	out := make([]float64, n)
	for i, x := range uint16s(seed, n) {
		out[i] = float64(x%mod-shift) / scale
	}
	return out
}

// pngsOf returns the images in a fixture's value: they are input, for PNG
// encoders differ.
func pngsOf(v *tfpb.Summary_Value, width, height int) []summary.EncodedImage {
	var out []summary.EncodedImage
	for _, data := range v.GetTensor().GetStringVal()[2:] {
		out = append(out, summary.EncodedImage{Width: width, Height: height, Colorspace: 3, Data: data})
	}
	return out
}

// TestGoldenTF2Writer makes the calls that TensorFlow's writer was given.
func TestGoldenTF2Writer(t *testing.T) {
	const name = "events.out.tfevents.1700000000.goldenhost.4242.0.v2"
	file := eventstest.ReadFile(t, "events/tf2_writer/"+name)
	want := eventstest.Events(t, file)
	value := must[*tfpb.Summary_Value](t)
	clip := func(samples []float32) *summary.AudioClip {
		return &summary.AudioClip{SampleRate: goldenRate, Channels: 2, Samples: samples}
	}
	sound := linearFloats(-0.9, 0.9, 24)
	mesh := &summary.Mesh{
		Vertices: [][3]float32{{0, 0, 0}, {1, 0, 0}, {0, 1, 0.5}},
		Faces:    [][3]int32{{0, 1, 2}},
		Colors:   [][3]uint8{{200, 200, 200}, {200, 200, 200}, {200, 200, 200}},
		Config:   `{"camera": {"cls": "PerspectiveCamera"}}`,
	}
	hist := func(tag string, values []float64, buckets int) *tfpb.Summary_Value {
		return value(summary.Histogram(tag, values, buckets))
	}
	raw := binary.LittleEndian.AppendUint64(nil, 1)
	for _, v := range []uint64{2, 3, 4} {
		raw = binary.LittleEndian.AppendUint64(raw, v)
	}
	calls := []struct {
		step   int64
		values []*tfpb.Summary_Value
	}{
		{0, one(summary.Scalar(goldenTag, 1))},
		{10, one(summary.Scalar(goldenTag, 0.5))},
		{20, one(summary.Scalar(goldenTag, 0.25))},
		{30, one(summary.Scalar(goldenTag, math.NaN()))},
		{0, one(summary.Describe(hist("hist/a", fixtureHistogram(31, 40, 2001, 1000, 128), 0), "", goldenMarkdown))},
		{1, one(summary.Describe(hist("hist/a", fixtureHistogram(32, 7, 2001, 1000, 128), 5), "", goldenMarkdown))},
		{9, one(hist("hist/empty", nil, 0))},
		{9, one(hist("hist/const", []float64{0.1, 0.1, 0.1}, 0))},
		{1, one(summary.Describe(value(summary.Images("imgs", pngsOf(want[9].GetSummary().GetValue()[0], 7, 5)...)), "", "pics"))},
		{2, one(value(summary.Audio("snd", clip(sound[:12]), clip(sound[12:]))))},
		{3, one(summary.Text("words", goldenText))},
		{3, one(value(summary.Texts("words2", []int64{2, 2}, "a", "b", goldenLog, "")))},
		{5, one(summary.PluginTensor("raw", summary.PluginScalars, []byte("\x00\x01"), &tfpb.TensorProto{
			Dtype: tfpb.DataType_DT_INT64, TensorShape: eventstest.Shape(2, 2), TensorContent: raw,
		}))},
		{0, nil}, // the graph
		{0, one(value(summary.HParams(goldenHParams, "trial-a", tfevents.At(1700000000.5))))},
		{0, one(summary.HParamsConfig(goldenExperiment()))},
		{6, must[[]*tfpb.Summary_Value](t)(mesh.Values("shape"))},
		{100, one(summary.Scalar("after_flush", 1))},
	}

	dir := t.TempDir()
	c := clock{tfevents.At(1700000000.5)}
	tfevents.WriterNumber.Store(0)
	w := tfevents.NewTestWriter(t, dir, &tfevents.FileWriterOptions{Form: tfevents.TF2, Host: "goldenhost", PID: 4242, Now: c.now})
	for i, call := range calls {
		c.t = tfevents.At(1700000000.5 + float64(i+1)*1.25)
		if call.values == nil {
			if err := w.AddGraph(t.Context(), want[14].GetGraphDef()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, v := range call.values { // TensorFlow writes one event for each
			if err := w.AddSummary(t.Context(), summary.New(v), call.step); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	gotName, got := tfevents.OnlyFile(t, dir)
	if gotName != name {
		t.Errorf("file name %q, want %q", gotName, name)
	}
	compareRecords(t, got, file)
}

func goldenExperiment() *tbpb.Experiment {
	interval := func(lo, hi float64) *tbpb.HParamInfo_DomainInterval {
		return &tbpb.HParamInfo_DomainInterval{DomainInterval: &tbpb.Interval{MinValue: lo, MaxValue: hi}}
	}
	return &tbpb.Experiment{
		TimeCreatedSecs: 1700000000.5,
		HparamInfos: []*tbpb.HParamInfo{
			{Name: "opt", Type: tbpb.DataType_DATA_TYPE_STRING, Domain: &tbpb.HParamInfo_DomainDiscrete{
				DomainDiscrete: &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("adam"), structpb.NewStringValue("sgd")}},
			}},
			{Name: "lr", DisplayName: "Dn", Description: "Dd", Type: tbpb.DataType_DATA_TYPE_FLOAT64, Domain: interval(0.0001, 0.1)},
			{Name: "n", Type: tbpb.DataType_DATA_TYPE_FLOAT64, Domain: interval(1, 9)},
		},
		MetricInfos: []*tbpb.MetricInfo{{
			Name:        &tbpb.MetricName{Group: "g", Tag: goldenTag},
			DisplayName: "M", DatasetType: tbpb.DatasetType_DATASET_VALIDATION,
		}},
	}
}

// compareRecords compares two files record by record. Python writes maps in a
// random order, so the content of the hparams plugin is compared decoded.
func compareRecords(t *testing.T, got, want []byte) {
	t.Helper()
	g, w := eventstest.Records(t, got), eventstest.Records(t, want)
	if len(g) != len(w) {
		t.Fatalf("%d records, want %d", len(g), len(w))
	}
	events, wantEvents := eventstest.Events(t, got), eventstest.Events(t, want)
	for i := range g {
		if bytes.Equal(g[i], w[i]) {
			continue
		}
		diff := cmp.Diff(decodeHParams(t, wantEvents[i]), decodeHParams(t, events[i]), protocmp.Transform())
		if diff != "" || len(g[i]) != len(w[i]) || hparamsContent(events[i]) == nil {
			t.Errorf("record %d\n %x, want\n %x\n%s", i, g[i], w[i], diff)
		}
	}
}

func hparamsContent(e *tfpb.Event) []byte {
	for _, v := range e.GetSummary().GetValue() {
		if p := v.GetMetadata().GetPluginData(); p.GetPluginName() == summary.PluginHParams {
			return p.GetContent()
		}
	}
	return nil
}

// decodeHParams returns e and, apart from it, its hparams content.
func decodeHParams(t *testing.T, e *tfpb.Event) []proto.Message {
	t.Helper()
	content := hparamsContent(e)
	if content == nil {
		return []proto.Message{e}
	}
	data := new(tbpb.HParamsPluginData)
	if err := proto.Unmarshal(content, data); err != nil {
		t.Fatal(err)
	}
	e = proto.CloneOf(e)
	e.GetSummary().GetValue()[0].GetMetadata().GetPluginData().Content = nil
	return []proto.Message{e, data}
}

// TestGoldenTensorBoard compares a whole file with that of TensorBoard's own
// writer and helpers. These store one float as float_val, TensorFlow as content.
func TestGoldenTensorBoard(t *testing.T) {
	const name = "events.out.tfevents.1700000401.goldenhost.4243.0.sfx"
	file := eventstest.ReadFile(t, "events/tensorboard_writer/"+name)
	want := eventstest.Events(t, file)[1:]
	dir := t.TempDir()
	c := clock{tfevents.At(1700000401)}
	tfevents.WriterNumber.Store(0)
	w := tfevents.NewTestWriter(t, dir, &tfevents.FileWriterOptions{Form: tfevents.TensorBoard, Host: "goldenhost", PID: 4243, Suffix: ".sfx", Now: c.now})
	value := must[*tfpb.Summary_Value](t)
	values := fixtureHistogram(24, 50, 401, 200, 16)
	labels, predictions := make([]bool, 50), make([]float32, 50)
	for i, x := range eventstest.Splitmix(25, 50) {
		labels[i] = x&1 == 1
	}
	for i, x := range eventstest.Splitmix(26, 50) {
		predictions[i] = float32(float64(x) / 255)
	}
	curve, err := summary.PRCurveOf(labels, predictions, nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	raw := &summary.PRCurve{
		TruePositives: []float64{9, 5, 1}, FalsePositives: []float64{8, 3, 0},
		TrueNegatives: []float64{1, 4, 9}, FalseNegatives: []float64{0, 4, 8},
		Precision: []float64{0.5, 0.6, 1}, Recall: []float64{1, 0.5, 0.1},
	}
	layout := &tbpb.Layout{Category: []*tbpb.Category{{Title: "losses", Chart: []*tbpb.Chart{
		summary.MultilineChart("c1", goldenTag, "loss.*"),
		summary.MarginChart("c2", &tbpb.MarginChartContent_Series{Value: "v", Lower: "l", Upper: "u"}),
	}}}}
	clip := &summary.AudioClip{SampleRate: goldenRate, Samples: linearFloats(-0.5, 0.5, 8), Label: goldenMarkdown}
	for i, got := range []*tfpb.Summary_Value{
		summary.Describe(summary.Scalar("train/loss/scalar_summary", 0.1), "disp", "desc"),
		summary.Describe(summary.Scalar(goldenTag, -3.4028234663852886e38), "", goldenMarkdown),
		summary.Describe(value(summary.Histogram("h1/histogram_summary", values, 6)), "h1", ""),
		value(summary.Histogram("h2", values, 6)),
		summary.Describe(summary.Text("t1/text_summary", goldenText), "t1", ""),
		summary.Text("t2", goldenText),
		summary.Describe(value(curve.Value("pr/pr_curves")), "PR", ""),
		value(raw.Value("pr2/pr_curves")),
		summary.CustomScalars(layout),
		value(summary.HParams(goldenHParams, "trial-a", tfevents.At(1700000000.5))),
		summary.Describe(value(summary.Images("i1/image_summary", pngsOf(want[10].GetSummary().GetValue()[0], 3, 3)...)), "i1", ""),
		summary.Describe(value(summary.Audio("a1/audio_summary", clip)), "a1", ""),
		summary.HParamsEnd(tbpb.Status_STATUS_SUCCESS, tfevents.At(1700000449.5)),
	} {
		c.t = tfevents.At(want[i].GetWallTime())
		if err := w.AddSummary(t.Context(), summary.New(listForm(got)), want[i].GetStep()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	gotName, got := tfevents.OnlyFile(t, dir)
	if gotName != name {
		t.Errorf("file name %q, want %q", gotName, name)
	}
	compareRecords(t, got, file)
}

// listForm moves the content of a single float into float_val.
func listForm(v *tfpb.Summary_Value) *tfpb.Summary_Value {
	x := v.GetTensor()
	if f, ok := decode.Scalar(v); ok && x.GetDtype() == tfpb.DataType_DT_FLOAT {
		x.TensorContent, x.FloatVal = nil, []float32{float32(f)}
	}
	return v
}

// TestGoldenTensorBoardX compares a file's beginning with that of tensorboardX,
// as far as its summaries are like those of TensorFlow 1.
func TestGoldenTensorBoardX(t *testing.T) {
	const name = "events.out.tfevents.1700000500.goldenhost.sfx"
	file := eventstest.ReadFile(t, "events/tensorboardX/"+name)
	want := eventstest.Events(t, file)
	dir := t.TempDir()
	c := clock{tfevents.At(want[0].GetWallTime())}
	w := tfevents.NewTestWriter(t, dir, &tfevents.FileWriterOptions{Form: tfevents.TensorBoardX, Host: "goldenhost", Suffix: ".sfx", Now: c.now})
	raw, err := summaryv1.Buckets("hraw", &tfpb.HistogramProto{
		Min: -1, Max: 2, Num: 4, Sum: 3, SumSquares: 5, BucketLimit: []float64{0, 1, 2}, Bucket: []float64{1, 1, 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	var picked []byte
	for i, v := range []*tfpb.Summary_Value{
		1: summaryv1.Scalar(goldenTag, 1), 2: summaryv1.Scalar(goldenTag, 0.5), 3: summaryv1.Scalar(goldenTag, 0.25), 4: summaryv1.Scalar(goldenTag, math.NaN()), 8: raw,
	} {
		if i == 0 || v != nil {
			picked = tfrecord.Append(picked, eventstest.Records(t, file)[i])
		}
		if v == nil {
			continue
		}
		if err := w.AddSummaryAt(t.Context(), tfevents.At(want[i].GetWallTime()), summary.New(v), want[i].GetStep()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tfevents.CheckFile(t, dir, name, picked)
}

func TestGoldenTF2Empty(t *testing.T) {
	const name = "events.out.tfevents.1700000300.goldenhost.4242.2.v2"
	dir := t.TempDir()
	c := clock{tfevents.At(1700000300.5)}
	tfevents.WriterNumber.Store(2)
	w := tfevents.NewTestWriter(t, dir, &tfevents.FileWriterOptions{Form: tfevents.TF2, Host: "goldenhost", PID: 4242, Now: c.now})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tfevents.CheckFile(t, dir, name, eventstest.ReadFile(t, "events/tf2_empty/"+name))
}

func TestGoldenTF1Session(t *testing.T) {
	file := eventstest.ReadFile(t, "events/tf1_graph_session/events.out.tfevents.1700000000.goldenhost")
	want := eventstest.Events(t, file)
	value := must[*tfpb.Summary_Value](t)
	ctx := t.Context()
	dir := t.TempDir()
	c := clock{tfevents.At(1700000000.5)}
	w := tfevents.NewTestWriter(t, dir, &tfevents.FileWriterOptions{Host: "goldenhost", Now: c.now})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(w.AddGraph(ctx, want[1].GetGraphDef()))
	check(w.AddMetaGraph(ctx, want[2].GetMetaGraphDef(), 0))
	check(w.AddSessionLog(ctx, &tfpb.SessionLog{Status: tfpb.SessionLog_START}, 0))
	for i := range 3 {
		c.t = tfevents.At(1700000001.5 + 1.25*float64(i))
		first := want[4+i].GetSummary().GetValue()
		images := func(i, width, height, colorspace int) summary.EncodedImage {
			return summary.EncodedImage{Width: width, Height: height, Colorspace: colorspace, Data: first[i].GetImage().GetEncodedImageString()}
		}
		a, b := float64(6*(i+1)), float64(9*(i+1))
		sound := &summary.AudioClip{SampleRate: goldenRate, Channels: 2, Samples: linearFloats(-1, 1, 20)}
		// The op writes its metadata with every run; the writer thins it out.
		meta := want[4].GetSummary().GetValue()
		values := []*tfpb.Summary_Value{summaryv1.Scalar("loss", 2*(a+b)), value(summaryv1.HistogramOf("y_hist", []float64{a, b, a, b}))}
		values = append(values, summaryv1.Images("img", images(2, 4, 4, 3), images(3, 4, 4, 3))...)
		values = append(values, summaryv1.Images("img_u8", images(4, 4, 4, 1))...)
		values = append(values, value(summaryv1.Audio("aud/audio/0", sound)), value(summary.Texts("txt", []int64{2}, goldenMarkdown, "x")))
		tensor := summary.Tensor("tens", first[7].GetTensor())
		tensor.Metadata = meta[7].GetMetadata()
		values = append(values, tensor)
		check(w.AddSummary(ctx, summary.New(values...), int64(10*i)))
	}
	c.t = tfevents.At(1700000050.5)
	check(w.AddRunMetadata(ctx, "step3", nil, 7))
	check(w.AddMetaGraph(ctx, want[8].GetMetaGraphDef(), 8))
	check(w.AddSessionLog(ctx, &tfpb.SessionLog{Status: tfpb.SessionLog_STOP}, 99))
	check(w.Close())
	tfevents.CheckFile(t, dir, "events.out.tfevents.1700000000.goldenhost", file)
}

func TestGoldenTraceGraph(t *testing.T) {
	const name = "events.out.tfevents.1700000200.goldenhost.4242.1.v2"
	file := eventstest.ReadFile(t, "events/tf2_trace_graph/"+name)
	e := eventstest.Events(t, file)[1]
	data := e.GetSummary().GetValue()[0].GetTensor().GetStringVal()[0]
	dir := t.TempDir()
	c := clock{tfevents.At(1700000200.5)}
	tfevents.WriterNumber.Store(1)
	w := tfevents.NewTestWriter(t, dir, &tfevents.FileWriterOptions{Form: tfevents.TF2, Host: "goldenhost", PID: 4242, Now: c.now})
	if err := w.AddSummaryAt(t.Context(), tfevents.At(e.GetWallTime()), summary.New(summary.RunMetadataGraph("fn_trace", data)), e.GetStep()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tfevents.CheckFile(t, dir, name, file)
}

func TestGoldenProjector(t *testing.T) {
	want := eventstest.ReadFile(t, "events/projector/projector_config.pbtxt")
	dir := t.TempDir()
	c := &tbpb.ProjectorConfig{ModelCheckpointPath: "model.ckpt-7"}
	for i, name := range []string{"x_in_0", "x_in_1"} {
		c.Embeddings = append(c.Embeddings, &tbpb.EmbeddingInfo{
			TensorName:   name + "/.ATTRIBUTES/VARIABLE_VALUE",
			MetadataPath: "meta " + name[len(name)-1:] + ".tsv",
			TensorShape:  []uint32{10, 3},
			Sprite:       &tbpb.SpriteMetadata{ImagePath: "s.png", SingleImageDim: []uint32{28, 28 + uint32(i)}},
		})
	}
	if err := projector.WriteConfig(dir, c); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "projector_config.pbtxt"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	back, err := projector.ReadConfig(dir)
	if diff := cmp.Diff(c, back, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
}

// clock is a clock that a test sets.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }
