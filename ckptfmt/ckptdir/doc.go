// Package ckptdir manages directories of checkpoints: it reads and writes the
// `checkpoint` file, which names the current one, lists checkpoints, finds
// leftover and missing files, and removes, moves and selects checkpoints.
//
// # The state file
//
// The file `checkpoint` is a CheckpointState in protobuf's text form:
//
//	model_checkpoint_path: "model.ckpt-900"
//	all_model_checkpoint_paths: "model.ckpt-800"
//	all_model_checkpoint_paths: "model.ckpt-900"
//	all_model_checkpoint_timestamps: 1763735311.5
//	all_model_checkpoint_timestamps: 1763735911.5
//
// A program that saves writes it after the checkpoint, by [UpdateState], and a
// program that restores asks [LatestCheckpoint]:
//
//	prefix, err := ckptdir.LatestCheckpoint("logdir", nil)
//	r, err := ckptfmt.Open(prefix, nil)
//
// # Order of changes
//
// The files of a checkpoint are published in the order data, index, MetaGraph,
// manifest, state file, each durably before the next, and removed in the reverse
// order: a checkpoint that the state file names exists and is complete.
// [Check] finds what a crash leaves behind, and [SweepTemps] removes it.
//
// The functions have no state. Different directories may be changed at the same
// time, but each by only one caller at a time; reading never interferes. No
// goroutine outlives a call.
package ckptdir
