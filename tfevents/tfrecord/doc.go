// Package tfrecord reads and writes TFRecord files, plain and compressed: records of
// bytes, whatever they hold. Events files are made of them.
//
// # Format
//
// Records follow each other, with nothing before, between or after them. All
// integers are little-endian.
//
//	offset  size  content
//	     0     8  L, the length of the data
//	     8     4  masked CRC-32C of the eight bytes before
//	    12     L  data
//	  12+L     4  masked CRC-32C of the data
//
// A checksum c is masked as (c>>15 | c<<17) + 0xa282ead8. The layout is that of
// tensorflow/core/lib/io/record_writer.h. A whole file may be compressed with zlib or
// gzip, as TFRecordOptions of TensorFlow says; nothing in it says so.
//
// # Use
//
// A [Writer] makes each record one write; a [Reader] tests both checksums, says of
// each damage where it is and what can follow it, and continues in a file that grows.
// [Append] makes a record in memory. Who encodes data in place calls [Begin], appends
// the data, and calls [End]; [Sum] then completes all records at once.
//
// # Concurrency
//
// Readers and writers are used by one goroutine at a time. The package starts none.
package tfrecord
