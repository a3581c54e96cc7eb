// Package tfevents writes and reads TensorBoard's events files.
//
// # Events files
//
// An events file is a TFRecord file, whose layout package tfrecord describes:
//
//	offset  size  content
//	     0     8  L, the length of the data, little-endian
//	     8     4  masked CRC-32C of the eight bytes before
//	    12     L  data
//	  12+L     4  masked CRC-32C of the data
//
// The data of each record is one Event message. The first one names the
// version, "brain.Event:2", and the program that wrote it. TensorBoard treats
// every file whose name contains "tfevents" as an events file, and reads those
// of one directory in the order of their names, as one run; TensorFlow names
// them
//
//	events.out.tfevents.<seconds since 1970, ten digits>.<host><suffix>
//
// [EventsWriter] writes such a stream to any [io.Writer]; [FileWriter] writes
// to a directory, in the background, and is meant for a training; [Reader]
// reads one stream, even while it grows.
//
// # Values
//
// A summary holds values with tags. TensorFlow 1 gave each kind of value its own
// field; TensorFlow 2 stores tensors, whose metadata names the TensorBoard plugin
// that shows them. TensorBoard reads both. Package summary makes tensors, package
// summaryv1 the older form; package summary/decode reads both. Package
// slogevents takes scalars from the records of a program's log.
//
// # Directories
//
// [FindRuns] finds the same runs as TensorBoard below a log directory. [ReadRun] and
// [ReadRuns] read runs as curves: they keep the scalars, and the positions of
// everything else. [Follow] keeps reading a run, and [MergeRun] turns it into one
// stream. A training that was killed and resumed from a checkpoint has written some
// steps twice: [Purge] decides which of them count.
//
// # Goroutines
//
// A FileWriter owns one goroutine, from its first event until Close returns.
// [ReadRuns] starts some, which end before it returns. Nothing else in this
// package starts goroutines, and nothing logs or prints.
package tfevents
