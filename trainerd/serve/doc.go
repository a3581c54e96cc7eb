// Package serve answers predictions over HTTP, in the form of TensorFlow
// Serving's REST API (https://www.tensorflow.org/tfx/serving/api_rest):
//
//	POST /v1/models/NAME[/versions/N]:predict   instances, or inputs
//	POST /v1/models/NAME[/versions/N]:classify  examples; classes with probabilities
//	POST /v1/models/NAME[/versions/N]:regress   examples; the predicted numbers
//	GET  /v1/models/NAME[/versions/N]           is the model available
//	GET  /v1/models/NAME[/versions/N]/metadata  its signatures
//	GET  /monitoring/prometheus/metrics         counts and times, for Prometheus
//	GET  /healthz                               is the process alive
//	GET  /readyz                                is a model loaded
//
// The version of a model is the step of its checkpoint, or the numeric name of
// a SavedModel's folder.
//
// Beyond TensorFlow Serving, requests may use the columns' names for every model family: for one
// that takes its rows as the tensor x, as for one with an input for each column, even if the
// signature gives an input another name (see
// [github.com/trainerd/trainerd/trainerd/model.InputNames]). null is a missing number or word, a
// number or date may be text, as in a file, and columns that the model does not know are ignored. Objects, lists of
// numbers and lists of words are read as in the rows of a JSON file, in instances and examples; inputs
// has a list with one of them for each row, or an object with a list for each of its keys.
//
// A request may name any signature of the model. For one that takes tf.Examples, as those of
// TensorFlow's estimators do, use :classify and :regress.
//
// # Concurrency
//
// A [Source] has one goroutine, which looks for a newer model while [Source.Watch]
// runs and ends with its context. A replaced model is closed after the last
// request that uses it. The goroutines of requests belong to the
// http.Server, which [Server.Serve] runs and [Server.Shutdown] ends.
package serve
