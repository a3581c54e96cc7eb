package tfevents

import (
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// This file says which values TensorBoard's loaders keep. A value that they do not keep still
// purges by its step, except, in the data server, if its event has an infinite time.

// keeps reports whether the loader that p imitates keeps a value of a series
// with the given metadata.
func (p Purge) keeps(m *tfpb.SummaryMetadata, v *tfpb.Summary_Value) bool {
	switch p {
	case PurgePython:
		return keptByPython(m, v)
	case PurgeDataServer:
		return keptByDataServer(m, v)
	}
	// An empty value only purges: see package eventlog of trainerd.
	return v.GetValue() != nil || m.GetDataClass() != tfpb.DataClass_DATA_CLASS_SCALAR
}

// keptByPython reports whether the Python loader keeps a value: it must not be empty, except for
// hyperparameters, which are all in the metadata.
func keptByPython(m *tfpb.SummaryMetadata, v *tfpb.Summary_Value) bool {
	switch v.GetValue().(type) {
	case nil, *tfpb.Summary_Value_ObsoleteOldStyleHistogram:
		return m.GetPluginData().GetPluginName() == summary.PluginHParams
	}
	return true
}

// errNoTime says what the data server does to an event whose time is not a
// number.
func errNoTime(name string) error {
	return fmt.Errorf("%s: an event has no time: TensorBoard's data server stops reading the file", name)
}

// keptByDataServer reports whether the data server keeps a value of a series
// with the given metadata.
func keptByDataServer(m *tfpb.SummaryMetadata, v *tfpb.Summary_Value) bool {
	switch m.GetDataClass() {
	case tfpb.DataClass_DATA_CLASS_SCALAR:
		return isScalarForDataServer(v)
	case tfpb.DataClass_DATA_CLASS_TENSOR:
		return isTensorForDataServer(v)
	case tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE:
		return isBlobsForDataServer(m.GetPluginData().GetPluginName(), v)
	}
	return false
}

func isScalarForDataServer(v *tfpb.Summary_Value) bool {
	switch x := v.GetValue().(type) {
	case *tfpb.Summary_Value_SimpleValue:
		return true
	case *tfpb.Summary_Value_Tensor:
		_, ok := decode.Scalar(v)
		return ok && x.Tensor.GetDtype() == tfpb.DataType_DT_FLOAT && len(x.Tensor.GetTensorShape().GetDim()) == 0
	}
	return false
}

func isTensorForDataServer(v *tfpb.Summary_Value) bool {
	switch x := v.GetValue().(type) {
	case *tfpb.Summary_Value_Tensor:
		return true
	case *tfpb.Summary_Value_Histo:
		return len(x.Histo.GetBucket()) == len(x.Histo.GetBucketLimit())
	}
	return v.GetValue() == nil // metadata alone counts as an empty tensor
}

func isBlobsForDataServer(plugin string, v *tfpb.Summary_Value) bool {
	switch x := v.GetValue().(type) {
	case *tfpb.Summary_Value_Image, *tfpb.Summary_Value_Audio:
		return true
	case *tfpb.Summary_Value_Tensor:
		return x.Tensor.GetDtype() == tfpb.DataType_DT_STRING && isBlobShape(plugin, x.Tensor)
	}
	return false
}

// isBlobShape reports whether a tensor of strings has the shape of a blob sequence: a list, a list
// of clips with their labels, or what the graph page accepts as one.
func isBlobShape(plugin string, t *tfpb.TensorProto) bool {
	switch dims := t.GetTensorShape().GetDim(); len(dims) {
	case 0:
		one := plugin == summary.PluginRunMetadata || plugin == summary.PluginRunMetadataGraph || plugin == summary.PluginKerasModel
		return one && len(t.GetStringVal()) == 1
	case 1:
		return true
	case 2:
		return plugin == summary.PluginAudio && dims[1].GetSize() == 2
	}
	return false
}
