// Emitevents writes one value of every kind that package tfevents knows, for
// tests that look at them with TensorBoard.
//
//	emitevents LOGDIR
//
// makes the runs v1 and v2, in the styles of TensorFlow 1 and 2, and the run
// tuned, whose hyperparameters were changed.
package main

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/projector"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: emitevents LOGDIR")
		os.Exit(2)
	}
	if err := emit(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "emitevents:", err)
		os.Exit(1)
	}
}

func emit(logdir string) error {
	if err := writeRun(filepath.Join(logdir, "v1"), tfevents.TF1, valuesV1); err != nil {
		return err
	}
	if err := writeRun(filepath.Join(logdir, "v2"), tfevents.TF2, valuesV2); err != nil {
		return err
	}
	if err := writeEmbedding(filepath.Join(logdir, "v2")); err != nil {
		return err
	}
	return writeTuned(filepath.Join(logdir, "tuned"))
}

// writeTuned makes a run whose hyperparameters are set twice.
func writeTuned(dir string) error {
	start := time.Now().Add(-time.Minute)
	if err := tfevents.WriteHParams(dir, map[string]any{"rate": 0.125}, "tuned", start); err != nil {
		return err
	}
	w, err := tfevents.NewFileWriter(dir, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.AddScalar(context.Background(), "scalar", 2.5, 1); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return tfevents.WriteHParams(dir, map[string]any{"rate": 0.75}, "tuned", start)
}

func writeEmbedding(dir string) error {
	info, err := projector.Write(dir, &projector.Embedding{
		Name:    "words",
		Vectors: [][]float32{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}},
		Labels:  [][]string{{"one", "1"}, {"two", "2"}, {"three", "3"}, {"four", "4"}},
		Header:  []string{"word", "number"},
	})
	if err != nil {
		return err
	}
	return projector.WriteConfig(dir, &tbpb.ProjectorConfig{Embeddings: []*tbpb.EmbeddingInfo{info}})
}

func writeRun(dir string, form tfevents.Form, values func() ([]*tfpb.Summary_Value, error)) error {
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Form: form})
	if err != nil {
		return err
	}
	defer w.Close()
	ctx := context.Background()
	graph, err := proto.Marshal(&tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "node_of_" + filepath.Base(dir), Op: "NoOp"}}})
	if err != nil {
		return err
	}
	if err := w.AddSessionLog(ctx, &tfpb.SessionLog{Status: tfpb.SessionLog_START}, 0); err != nil {
		return err
	}
	if err := w.AddGraph(ctx, graph); err != nil {
		return err
	}
	list, err := values()
	if err != nil {
		return err
	}
	for step := range int64(2) { // the second time without metadata
		if err := w.AddSummary(ctx, summary.New(list...), step); err != nil {
			return err
		}
	}
	return w.Close()
}

// collector gathers values until the first error.
type collector struct {
	values []*tfpb.Summary_Value
	err    error
}

func (c *collector) add(v *tfpb.Summary_Value, err error) {
	c.values = append(c.values, v)
	if c.err == nil {
		c.err = err
	}
}

func (c *collector) addAll(values []*tfpb.Summary_Value, err error) {
	for _, v := range values {
		c.add(v, err)
	}
}

func valuesV1() ([]*tfpb.Summary_Value, error) {
	var c collector
	c.add(summaryv1.Scalar("scalar", 1.5), nil)
	c.add(summaryv1.HistogramOf("histogram", []float64{-1, 0, 0, 2}))
	c.add(summaryv1.Buckets("buckets", &tfpb.HistogramProto{
		Min: 0, Max: 2, Num: 3, Sum: 3, BucketLimit: []float64{1, 2}, Bucket: []float64{1, 2},
	}))
	picture, err := summary.EncodePNG(checkers(image.NewRGBA(image.Rect(0, 0, 8, 6))))
	if err != nil {
		return nil, err
	}
	c.addAll(summaryv1.Images("picture", picture, picture), nil)
	frame := image.NewPaletted(image.Rect(0, 0, 8, 6), palette.Plan9)
	film, err := summary.EncodeGIF(&gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{10, 10}})
	if err != nil {
		return nil, err
	}
	c.add(summaryv1.Image("film", film), nil)
	c.add(summaryv1.Audio("audio", &summary.AudioClip{SampleRate: 8000, Samples: make([]float32, 80)}))
	c.add(summary.Text("text", "some *words*"), nil)
	c.add(summary.Table("table", []string{"a", "b"}, []string{"1", "2"}), nil)
	return c.values, c.err
}

func valuesV2() ([]*tfpb.Summary_Value, error) {
	var c collector
	c.add(summary.Scalar("scalar", 1.5), nil)
	c.add(summary.Histogram("histogram", []float64{-1, 0, 0, 2}, 3))
	c.add(summary.Buckets("buckets", []summary.Bucket{{Left: 0, Right: 1, Count: 1}, {Left: 1, Right: 2, Count: 2}}), nil)
	picture, err := summary.EncodePNG(checkers(image.NewGray(image.Rect(0, 0, 8, 6))))
	if err != nil {
		return nil, err
	}
	c.add(summary.Images("picture", picture, picture))
	c.add(summary.Audio("audio", &summary.AudioClip{SampleRate: 8000, Channels: 2, Samples: make([]float32, 80), Label: "silence"}))
	c.add(summary.Texts("text", []int64{2}, "one", "two"))
	curve, err := summary.PRCurveOf([]bool{true, false, true}, []float32{1, 0.4, 0.2}, nil, 11)
	if err != nil {
		return nil, err
	}
	c.add(curve.Value("curve"))
	mesh := &summary.Mesh{Vertices: [][3]float32{{}, {1, 0, 0}, {0, 1, 0}}, Faces: [][3]int32{{0, 1, 2}}, Colors: make([][3]uint8, 3)}
	c.addAll(mesh.Values("mesh"))
	c.add(summary.CustomScalars(&tbpb.Layout{Category: []*tbpb.Category{{
		Title: "together", Chart: []*tbpb.Chart{summary.MultilineChart("chart", "scalar")},
	}}}), nil)
	c.add(summary.HParamsConfig(&tbpb.Experiment{
		HparamInfos: []*tbpb.HParamInfo{{Name: "rate", Type: tbpb.DataType_DATA_TYPE_FLOAT64}},
		MetricInfos: []*tbpb.MetricInfo{{Name: &tbpb.MetricName{Tag: "scalar"}}},
	}), nil)
	c.add(summary.HParams(map[string]any{"rate": 0.25}, "", time.Now()))
	c.add(summary.HParamsEnd(tbpb.Status_STATUS_SUCCESS, time.Now()), nil)
	return c.values, c.err
}

// canvas is an image that can be painted.
type canvas interface {
	image.Image
	Set(x, y int, c color.Color)
}

func checkers(m canvas) image.Image {
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			m.Set(x, y, color.Gray{Y: uint8((x + y) % 2 * 255)})
		}
	}
	return m
}
