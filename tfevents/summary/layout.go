package summary

import (
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

// customScalarsTag is where TensorBoard looks for the layout of a run.
const customScalarsTag = "custom_scalars__config__"

// CustomScalars returns the layout of TensorBoard's custom scalars page: charts
// that show several tags together.
func CustomScalars(layout *tbpb.Layout) *tfpb.Summary_Value {
	return PluginTensor(customScalarsTag, PluginCustomScalars, nil, stringTensor(shapeProto(), tfproto.Marshal(layout)))
}

// MultilineChart returns a chart of all tags that match one of the regular
// expressions.
func MultilineChart(title string, tags ...string) *tbpb.Chart {
	return &tbpb.Chart{Title: title, Content: &tbpb.Chart_Multiline{Multiline: &tbpb.MultilineChartContent{Tag: tags}}}
}

// MarginChart returns a chart of values with a margin; each series names the
// tags of the value and of the margin's lower and upper bounds.
func MarginChart(title string, series ...*tbpb.MarginChartContent_Series) *tbpb.Chart {
	return &tbpb.Chart{Title: title, Content: &tbpb.Chart_Margin{Margin: &tbpb.MarginChartContent{Series: series}}}
}

// RunMetadataGraph returns the graphs of the functions in an encoded
// RunMetadata for TensorBoard's graph page, as tf.summary.trace_export does.
func RunMetadataGraph(tag string, runMetadata []byte) *tfpb.Summary_Value {
	return PluginTensor(tag, PluginRunMetadataGraph, []byte("1"), stringTensor(shapeProto(), runMetadata))
}
