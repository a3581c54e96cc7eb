// Package decode reads the values of summaries: [Scalar], [Blobs] and [Numbers]
// return the contents of a value, and [Modern] converts the values of an event, in
// the style of TensorFlow 1 or 2, into tensors as package summary makes them, as
// TensorBoard does when it reads.
//
//	for _, v := range decode.Modern(event) {
//		if x, ok := decode.Scalar(v); ok {
//			fmt.Println(event.GetStep(), v.GetTag(), x)
//		}
//	}
//
// The functions have no state.
package decode

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// RunGraphTag is the tag under which TensorBoard keeps the graph of a run.
const RunGraphTag = "__run_graph__"

// DescribesRun reports whether the values of a plugin describe the whole run
// instead of one step.
func DescribesRun(plugin string) bool {
	switch plugin {
	case summary.PluginGraphs, summary.PluginRunMetadata, summary.PluginRunMetadataGraph, summary.PluginKerasModel, summary.PluginTaggedRunMetadata,
		summary.PluginHParams, summary.PluginCustomScalars:
		return true
	}
	return false
}

// dataClasses says how TensorBoard keeps the data of its plugins. No writer
// does.
var dataClasses = map[string]tfpb.DataClass{
	summary.PluginScalars:           tfpb.DataClass_DATA_CLASS_SCALAR,
	summary.PluginHistograms:        tfpb.DataClass_DATA_CLASS_TENSOR,
	summary.PluginText:              tfpb.DataClass_DATA_CLASS_TENSOR,
	summary.PluginHParams:           tfpb.DataClass_DATA_CLASS_TENSOR,
	summary.PluginPRCurves:          tfpb.DataClass_DATA_CLASS_TENSOR,
	summary.PluginMesh:              tfpb.DataClass_DATA_CLASS_TENSOR,
	summary.PluginCustomScalars:     tfpb.DataClass_DATA_CLASS_TENSOR,
	summary.PluginImages:            tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE,
	summary.PluginAudio:             tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE,
	summary.PluginGraphs:            tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE,
	summary.PluginRunMetadata:       tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE,
	summary.PluginRunMetadataGraph:  tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE,
	summary.PluginKerasModel:        tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE,
	summary.PluginTaggedRunMetadata: tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE,
}

// Modern returns the values of e in the style of TensorFlow 2, converting older
// ones as TensorBoard does: a tensor, and metadata that names the plugin.
// Graphs and run metadata become values too. Values without a tensor or without
// a plugin are returned unchanged. Neither e nor its parts are changed, but the
// result may share them.
func Modern(e *tfpb.Event) []*tfpb.Summary_Value {
	switch what := e.GetWhat().(type) {
	case *tfpb.Event_Summary:
		values := make([]*tfpb.Summary_Value, len(what.Summary.GetValue()))
		for i, v := range what.Summary.GetValue() {
			values[i] = ModernValue(v)
		}
		return values
	case *tfpb.Event_GraphDef:
		return []*tfpb.Summary_Value{withClass(summary.PluginTensor(RunGraphTag, summary.PluginGraphs, nil,
			stringTensor([]int64{1}, what.GraphDef)))}
	case *tfpb.Event_TaggedRunMetadata:
		m := what.TaggedRunMetadata
		return []*tfpb.Summary_Value{withClass(summary.PluginTensor(m.GetTag(), summary.PluginTaggedRunMetadata, nil,
			stringTensor([]int64{1}, m.GetRunMetadata())))}
	}
	return nil
}

// ModernValue does the same for one value of a summary and returns one that
// has a tensor, or v itself.
func ModernValue(v *tfpb.Summary_Value) *tfpb.Summary_Value {
	switch x := v.GetValue().(type) {
	case *tfpb.Summary_Value_SimpleValue:
		return renewed(v, summary.Scalar(v.GetTag(), float64(x.SimpleValue)))
	case *tfpb.Summary_Value_Histo:
		return renewed(v, summary.Buckets(v.GetTag(), modernBuckets(x.Histo)))
	case *tfpb.Summary_Value_Image:
		size := [][]byte{
			strconv.AppendInt(nil, int64(x.Image.GetWidth()), 10),
			strconv.AppendInt(nil, int64(x.Image.GetHeight()), 10),
			x.Image.GetEncodedImageString(),
		}
		content := tfproto.Marshal(&tbpb.ImagePluginData{ConvertedToTensor: true})
		return renewed(v, summary.PluginTensor(v.GetTag(), summary.PluginImages, content, stringTensor([]int64{3}, size...)))
	case *tfpb.Summary_Value_Audio:
		content := tfproto.Marshal(&tbpb.AudioPluginData{Encoding: tbpb.AudioPluginData_WAV, ConvertedToTensor: true})
		return renewed(v, summary.PluginTensor(v.GetTag(), summary.PluginAudio, content,
			stringTensor([]int64{1, 2}, x.Audio.GetEncodedAudioString(), nil)))
	}
	return withClass(v)
}

// ScalarMetadata returns the metadata that [ModernValue] gives a value with only a tag and
// a simple_value, by far the most common kind, without converting it.
func ScalarMetadata(tag string) *tfpb.SummaryMetadata {
	return &tfpb.SummaryMetadata{
		DisplayName: tag,
		PluginData:  &tfpb.SummaryMetadata_PluginData{PluginName: summary.PluginScalars},
		DataClass:   tfpb.DataClass_DATA_CLASS_SCALAR,
	}
}

// renewed gives the converted value the names of the old one.
func renewed(old, v *tfpb.Summary_Value) *tfpb.Summary_Value {
	v.NodeName = old.GetNodeName()
	name := old.GetMetadata().GetDisplayName()
	if name == "" {
		name = old.GetTag()
	}
	return withClass(summary.Describe(v, name, old.GetMetadata().GetSummaryDescription()))
}

// withClass fills in the data class of plugins that are known.
func withClass(v *tfpb.Summary_Value) *tfpb.Summary_Value {
	class := dataClasses[v.GetMetadata().GetPluginData().GetPluginName()]
	if v.GetMetadata().GetDataClass() != tfpb.DataClass_DATA_CLASS_UNKNOWN || class == tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return v
	}
	v = &tfpb.Summary_Value{Tag: v.Tag, NodeName: v.NodeName, Value: v.Value, Metadata: proto.CloneOf(v.Metadata)}
	v.Metadata.DataClass = class
	return v
}

// modernBuckets drops the empty buckets at both ends and lets the outer ones
// end at the least and the largest value: the limits of TensorFlow 1 reach as
// far as doubles do.
func modernBuckets(h *tfpb.HistogramProto) []summary.Bucket {
	limits, counts := h.GetBucketLimit(), h.GetBucket()
	first, last := 0, min(len(limits), len(counts))-1
	for first <= last && !(counts[first] > 0) {
		first++
	}
	for last >= first && !(counts[last] > 0) {
		last--
	}
	var out []summary.Bucket
	for i := first; i <= last; i++ {
		b := summary.Bucket{Left: h.GetMin(), Right: limits[i], Count: counts[i]}
		if i > first {
			b.Left = limits[i-1]
		}
		if i == last {
			b.Right = h.GetMax()
		}
		out = append(out, b)
	}
	return out
}

func stringTensor(dims []int64, values ...[]byte) *tfpb.TensorProto {
	shape := new(tfpb.TensorShapeProto)
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &tfpb.TensorShapeProto_Dim{Size: d})
	}
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shape, StringVal: values}
}
