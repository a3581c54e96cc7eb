// Package summary makes the values of summaries that TensorBoard shows: scalars,
// histograms, images, audio, texts, tables, PR curves, meshes, hyperparameters,
// graphs, and the layout of the custom scalars page. They are tensors whose
// metadata names the plugin that shows them, as tf.summary of TensorFlow 2
// writes them; package summaryv1 has the form of TensorFlow 1.
//
//	v := summary.Scalar("loss", 0.25)
//	err := w.AddSummary(ctx, summary.New(v), step)
//
// Package decode reads such values, in either form.
//
// The names of plugins, tags and messages are those of the plugins' own sources in
// the repository tensorflow/tensorboard. The functions have no state.
package summary

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// The names under which TensorBoard's plugins find their data.
const (
	PluginScalars       = "scalars"
	PluginHistograms    = "histograms"
	PluginImages        = "images"
	PluginAudio         = "audio"
	PluginText          = "text"
	PluginPRCurves      = "pr_curves"
	PluginMesh          = "mesh"
	PluginHParams       = "hparams"
	PluginCustomScalars = "custom_scalars"
	PluginGraphs        = "graphs"
	// PluginRunMetadataGraph is for RunMetadata with the graphs of functions,
	// PluginRunMetadata for RunMetadata with costs, PluginKerasModel for a
	// model's JSON, and PluginTaggedRunMetadata for the contents of
	// tagged_run_metadata events.
	PluginRunMetadataGraph  = "graph_run_metadata_graph"
	PluginRunMetadata       = "graph_run_metadata"
	PluginKerasModel        = "graph_keras_model"
	PluginTaggedRunMetadata = "graph_tagged_run_metadata"
)

// New returns a summary of the given values.
func New(v ...*tfpb.Summary_Value) *tfpb.Summary { return &tfpb.Summary{Value: v} }

// Scalar returns a scalar in the style of TensorFlow 2, a float32 tensor of
// rank 0: the only kind that TensorBoard's data server accepts as a scalar.
func Scalar(tag string, v float64) *tfpb.Summary_Value {
	return PluginTensor(tag, PluginScalars, nil, &tfpb.TensorProto{
		Dtype:         tfpb.DataType_DT_FLOAT,
		TensorShape:   shapeProto(),
		TensorContent: binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))),
	})
}

// Text returns a text for TensorBoard's text plugin, which reads it as Markdown.
func Text(tag, text string) *tfpb.Summary_Value {
	return PluginTensor(tag, PluginText, nil, stringTensor(shapeProto(), []byte(text)))
}

// Texts returns an array of texts, which TensorBoard shows as a table. Their
// number must be the product of the shape.
func Texts(tag string, shape []int64, texts ...string) (*tfpb.Summary_Value, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt32/d {
			return nil, fmt.Errorf("tfevents: text %q: shape %v", tag, shape)
		}
		n *= d
	}
	if n != int64(len(texts)) {
		return nil, fmt.Errorf("tfevents: text %q: %d texts for shape %v", tag, len(texts), shape)
	}
	values := make([][]byte, len(texts))
	for i, s := range texts {
		values[i] = []byte(s)
	}
	return PluginTensor(tag, PluginText, nil, stringTensor(shapeProto(shape...), values...)), nil
}

// Table returns a text with a Markdown table. Bars and line breaks in cells are
// escaped; short rows are padded.
func Table(tag string, header []string, rows ...[]string) *tfpb.Summary_Value {
	columns := len(header)
	for _, r := range rows {
		columns = max(columns, len(r))
	}
	var b strings.Builder
	writeTableRow(&b, header, columns)
	b.WriteString("|" + strings.Repeat("---|", columns) + "\n")
	for _, r := range rows {
		writeTableRow(&b, r, columns)
	}
	return Text(tag, b.String())
}

var cellEscaper = strings.NewReplacer("|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>")

func writeTableRow(b *strings.Builder, cells []string, columns int) {
	b.WriteString("|")
	for i := range columns {
		if i < len(cells) {
			b.WriteString(" " + cellEscaper.Replace(cells[i]))
		}
		b.WriteString(" |")
	}
	b.WriteString("\n")
}

// Tensor returns a tensor that no plugin shows, as tensor_summary writes it.
func Tensor(tag string, t *tfpb.TensorProto) *tfpb.Summary_Value {
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_Tensor{Tensor: t}}
}

// PluginTensor returns a value in the style of TensorFlow 2: a tensor, the
// plugin that shows it, and the plugin's own content.
func PluginTensor(tag, plugin string, content []byte, t *tfpb.TensorProto) *tfpb.Summary_Value {
	v := Tensor(tag, t)
	v.Metadata = &tfpb.SummaryMetadata{
		PluginData: &tfpb.SummaryMetadata_PluginData{PluginName: plugin, Content: content},
	}
	return v
}

// Describe gives v the name and the Markdown description that TensorBoard
// shows, and returns v. An empty string leaves either unchanged.
func Describe(v *tfpb.Summary_Value, displayName, description string) *tfpb.Summary_Value {
	if v.Metadata == nil {
		v.Metadata = new(tfpb.SummaryMetadata)
	} else {
		v.Metadata = proto.CloneOf(v.Metadata)
	}
	if displayName != "" {
		v.Metadata.DisplayName = displayName
	}
	if description != "" {
		v.Metadata.SummaryDescription = description
	}
	return v
}

// shapeProto returns a shape; without dimensions, that of a single element.
func shapeProto(dims ...int64) *tfpb.TensorShapeProto {
	s := new(tfpb.TensorShapeProto)
	for _, d := range dims {
		s.Dim = append(s.Dim, &tfpb.TensorShapeProto_Dim{Size: d})
	}
	return s
}

func stringTensor(shape *tfpb.TensorShapeProto, values ...[]byte) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shape, StringVal: values}
}

func floatTensor(shape *tfpb.TensorShapeProto, values []float32) *tfpb.TensorProto {
	content := make([]byte, 0, 4*len(values))
	for _, v := range values {
		content = binary.LittleEndian.AppendUint32(content, math.Float32bits(v))
	}
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shape, TensorContent: content}
}

func doubleTensor(shape *tfpb.TensorShapeProto, values []float64) *tfpb.TensorProto {
	content := make([]byte, 0, 8*len(values))
	for _, v := range values {
		content = binary.LittleEndian.AppendUint64(content, math.Float64bits(v))
	}
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, TensorShape: shape, TensorContent: content}
}
