// Package graphrun trains a user's own graphs: MetaGraphDefs that TensorFlow has exported.
//
// [Inspect] reports what a graph needs and offers. [Run] runs it step by step, without a config:
// the command `trainerd graph run`. [NewProgram] finds in a graph what a job needs, so that the
// graph is trained like a model family.
//
// Names of tensors that users give may leave out the output, ":0". What they name
// wrongly is an [*ArgumentError], a value that cannot be fed a [*FeedError], and a
// file that holds no graph a [*program.FileError].
//
// Run works in the goroutine of its caller; the queue runners of the graph have
// goroutines of their own, which have ended when it returns.
package graphrun
