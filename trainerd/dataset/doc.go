// Package dataset reads tabular training data and hands it out in batches.
//
// [Load] reads a CSV file, plain or compressed with gzip, whatever its name
// says. Every row is one example: one column holds the label, an integer class
// from 0 up, and all others are features, finite numbers. Reading is strict; a
// value that is not what it should be is an [Error] with the file, the line and
// the column, never a guess.
//
// The rows are split into a training and a test part, the features are scaled
// as [Options] asks (from the training part's statistics alone, so that the
// test part stays unseen), and [Dataset.Batch] gives the training rows in
// batches of one size.
//
// # Which rows a batch holds
//
// A batch is a pure function of the options and the step, so a training that is
// resumed at a step sees exactly the rows that it would have seen without the
// interruption; no position needs to be saved.
//
// Epoch e is a permutation of the n training rows. The training reads the
// epochs one after the other, without a seam: the batch of step s holds the
// positions s*B to s*B+B-1 of that endless row of rows, B being the batch size.
// All batches are therefore full, each row is used equally often, and a batch
// may hold the end of one epoch and the beginning of the next.
//
// The permutation of an epoch is a Fisher-Yates shuffle, from the last place to
// the first, of 0..n-1. The place to swap with comes from ChaCha8 (math/rand/v2)
// as the high 64 bits of the 128-bit product of its next output and the number of
// places left. Its 32-byte key is the seed, then the number of the epoch, both
// as 64-bit little-endian integers, then the 16 bytes "trainerd/dataset". The
// split uses the same shuffle over all rows, keyed with the epoch number
// 2^64-1: the rows that come first train, the others test.
package dataset
