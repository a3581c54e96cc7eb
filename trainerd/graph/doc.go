// Package graph builds and reads TensorFlow MetaGraphDefs.
//
// # Building
//
// A [Builder] makes a graph node by node, with TensorFlow's rules for names,
// scopes, collections and variables, and with the sub-graphs that a training
// needs: gradients ([Builder.Gradients]), initialisation and readiness
// ([Builder.AddInit], [Builder.AddReady]), summaries and a saver
// ([Builder.AddSaver]). The result is laid out like the export of a TensorFlow
// 1 program, so that TensorFlow imports, trains, saves and restores it:
//
//	b := graph.NewBuilder()
//	x := b.Placeholder("x", tfpb.DataType_DT_FLOAT, graph.MakeShape(-1, 4))
//	w := b.Variable(graph.VariableSpec{Name: "w", ...})
//	loss := b.Mean("loss", b.MatMul("", x, b.Read("", w), false, false))
//	...
//	meta, err := b.MetaGraph()
//
// A Builder remembers the first mistake and continues; MetaGraph returns it, so
// the calls in between need no checks.
//
// Package optimizer adds the training of a loss, package attr makes attributes for
// nodes that a Builder has no method for, and package literal makes the values of
// constants.
//
// # Reading
//
// Package ckptfmt/metagraph reads the .meta files of TensorFlow. [Parse] indexes and
// checks such a MetaGraphDef and returns a [Graph]: placeholders, variables, the ops
// that collections name. [Complete] adds what a Supervisor needs if the file lacks it:
// a saver, ready, init and summary ops.
package graph
