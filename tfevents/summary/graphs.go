package summary

import tfpb "github.com/trainerd/trainerd/proto"

// RunMetadata returns an encoded RunMetadata with costs for TensorBoard's graph
// page, as tf.summary.trace_export does with its profiler.
func RunMetadata(tag string, runMetadata []byte) *tfpb.Summary_Value {
	return PluginTensor(tag, PluginRunMetadata, []byte("1"), stringTensor(shapeProto(), runMetadata))
}

// KerasModel returns a Keras model, given as the JSON of its to_json, for
// TensorBoard's graph page, as the Keras callback writes it.
func KerasModel(tag, json string) *tfpb.Summary_Value {
	return PluginTensor(tag, PluginKerasModel, []byte("1"), stringTensor(shapeProto(), []byte(json)))
}
