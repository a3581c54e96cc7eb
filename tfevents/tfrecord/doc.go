// Package tfrecord reads and writes TFRecord files, plain and compressed: records of
// arbitrary bytes. Events files consist of them.
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
// gzip, see TensorFlow's TFRecordOptions; nothing in the file says so.
//
// # Use
//
// A [Writer] writes each record with one call; a [Reader] verifies both checksums,
// says for each damage where it is and whether reading can continue, and continues in
// a file that grows. [Append] makes a record in memory. To encode data in place, call
// [Begin], append the data, and call [End]; [Sum] then completes all records at once.
//
// # Concurrency
//
// Readers and writers must be used by one goroutine at a time. The package starts
// no goroutines.
package tfrecord
