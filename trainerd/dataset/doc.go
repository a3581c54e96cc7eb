// Package dataset reads training data and returns them in batches.
//
// [Load] reads tables (CSV, JSON, Parquet: see package table), TFRecord files of
// tf.Example messages, IDX files such as MNIST's, arrays of NumPy, and folders of images;
// [Options] says which. An example is a row of features, finite numbers or ids, and a label:
// a class from 0 up, or a number to predict. Reading is strict: anything invalid is an [Error]
// with the file, the line or record, the column or feature, and what to do; never a
// guess. Everything is read, and so checked, before the first batch.
//
// The examples are split into a training and a test part, and [Dataset.Batch]
// returns the training examples in batches of one size. Rows are raw: [Schema]
// describes each of their numbers, and [Dataset.Statistics] describes the
// training part, so that a model can scale them itself and be used with raw
// rows later. For a graph that cannot, [Options] can scale them.
//
// # Memory
//
//	tables       4 bytes a feature, twice while loading
//	texts        4 bytes a word
//	IDX, NumPy   the elements if they are bytes, else 4 bytes a feature, twice
//	             while loading
//	images       a byte for each pixel and channel; beyond Options.MemoryLimit
//	             only the names, and images are decoded for each batch
//	TFRecord     4 bytes a feature, twice while loading; with
//	             Options.ShuffleBuffer that of so many examples, and a bit for
//	             each of the others; 4 bytes for each with weights
//
// Data that would need more than Options.MemoryLimit are an error. So are tables and
// tf.Example messages in memory that would need more than a quarter of what the machine
// or the control group has: buffers that grow take as much again while loading.
//
// # Which examples a batch holds
//
// A batch is a pure function of the options and the step, so a training that is
// resumed at a step sees exactly the examples that it would have seen without
// the interruption; no position needs to be saved.
//
// Epoch e is a permutation of the n training examples. The training reads the
// epochs one after another, without a gap: the batch of step s holds the
// positions s*B to s*B+B-1 of that endless sequence of rows, B being the batch
// size. All batches are therefore full, each example is used equally often, and
// a batch may hold the end of one epoch and the beginning of the next.
//
// The permutation of an epoch is a Fisher-Yates shuffle of 0..n-1, from the last place to the
// first. The place to swap with is the high 64 bits of the 128-bit product of ChaCha8's
// (math/rand/v2) next output and the number of places left. Its 32-byte key is the seed, then the
// number of the epoch, both as 64-bit little-endian integers, then the 16 bytes "trainerd/dataset".
// The split uses the same shuffle over all examples, keyed with the epoch number 2^64-1: the first
// ones train, the others test. With Options.Group, the groups whose rows come last in that order
// test, as long as each brings the test part closer to its size.
//
// # Streams
//
// With Options.ShuffleBuffer = W the examples are not all in memory. The
// training examples of an epoch, in the order of the files, are cut into windows
// of W; one is in memory at a time and is mixed as above; the key ends
// in "windows", a zero, and the window's number instead. The first window of an
// epoch is shorter by a number that ChaCha8 draws, keyed with the epoch and
// "trainerd/shift" and two zeros, so that examples in different windows of one
// epoch may share a window in another. To resume, the files are read again up to
// the window of the step. The test examples of a stream are drawn one by one,
// all equally likely.
package dataset
