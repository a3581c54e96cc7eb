// Package predict loads trained models and runs their signatures.
//
// [Open] takes a logdir, and uses its best checkpoint by evaluation or else the
// newest intact one, or it takes a SavedModel. A [Model] runs in
// this process; its methods are safe for concurrent use, and Close ends it.
//
// A model family takes raw rows, as [dataset.Schema] describes them: see
// [Model.Predict]. Any signature can be run by the names of its inputs and
// outputs: see [Model.Run].
package predict
