// Package ckptfmt reads and writes the tensors of TensorFlow checkpoints: bundles
// (V2) and the older slice files (V1). For the same tensors, the files are
// byte for byte those of TensorFlow.
//
// Package layout has the names of a checkpoint's files, dtype the names of the
// types, and metagraph reads and writes the MetaGraphDef next to a checkpoint.
//
// Packages built on it: ckptdir manages directories of checkpoints with their
// `checkpoint` file, manifest their checksums and metrics, and retention
// decides which are kept; inspect examines their tensors; rewrite makes new
// checkpoints from them; formats opens the files of other libraries.
//
// # A bundle
//
// The bundle with the prefix "logdir/model.ckpt-900" is these files:
//
//	logdir/model.ckpt-900.data-00000-of-00001   the elements
//	logdir/model.ckpt-900.index                 where they are
//
// A data file holds the tensors one after another, in the order in which they
// were saved, row-major and little-endian, without any header:
//
//	| tensor 0 | tensor 1 | ... |
//
// A tensor of strings is stored as
//
//	| length: varint ... | masked CRC-32C of the lengths: uint32 | string ... |
//
// The index is a table (package sstable), ordered by key:
//
//	""            BundleHeaderProto: number of data files, byte order, version
//	slice keys    BundleEntryProto of each part of a partitioned tensor
//	tensor names  BundleEntryProto: type, shape, shard, offset, size, masked
//	              CRC-32C of the bytes; of a partitioned tensor: its slices
//
// Big-endian bundles are read, never written. The checksums cover all bytes of the
// tensors, and all of the index except the metaindex block and the footer: a
// flipped bit there is found only if it leads to a wrong block. Nor do they cover
// the padding of aligned tensors, the MetaGraphDef and the state file. The
// manifest, a side file, has a SHA-256 of each file; see package manifest.
//
// # Writing
//
//	w, err := ckptfmt.CreateBundle("logdir/model.ckpt-900", nil)
//	if err != nil { ... }
//	defer w.Close()
//	if err := w.Add("weights", weights); err != nil { ... }
//	if err := w.Finish(); err != nil { ... }
//	err = ckptdir.UpdateState("logdir", &tfpb.CheckpointState{
//		ModelCheckpointPath: "logdir/model.ckpt-900",
//	}, nil)
//
// # Reading
//
//	prefix, err := ckptdir.LatestCheckpoint("logdir", nil)
//	r, err := ckptfmt.Open(prefix, nil)
//	if err != nil { ... }
//	defer r.Close()
//	t, err := r.Lookup("weights")
//	values, err := ckptfmt.Values[float32](t)
//
// A tensor is read whole, by [Reader].Lookup; in part, by LookupSlice; as a
// stream, by OpenTensor; or without copying it, by [BundleReader.View], which
// maps the file and has conditions. All but the last verify its checksum,
// which requires reading all of it; [ReaderOptions] can switch that off.
// Writers take a tensor, a slice, or a stream, and keep none of them in
// memory.
//
// Large tensors are read and checksummed by several goroutines, one per
// processor. They have ended when the call returns.
//
// # Durability
//
// TensorFlow never syncs what it writes. This package does, in this order:
// data and index are written under temporary names and synced; the data file
// is renamed and its directory synced; then the same with the index. A checkpoint
// whose index has its final name is complete. The MetaGraphDef, the manifest and
// the state file are then replaced in the same way; a checkpoint is removed in the
// reverse order. So after a power cut at any moment the current checkpoint is the
// previous one or the new one. This holds if a sync reaches the disk and a rename
// is atomic, as on the usual local file systems; on systems that cannot sync a
// directory it holds only for crashes of the process. ckptdir.Check finds what
// a crash leaves behind, and ckptdir.SweepTemps removes it.
//
// # Damage
//
// Nothing in a file is trusted before it is checked: lengths against the
// remaining bytes, shapes against overflow and the available bytes. Damage is
// a [*CorruptError] that names file, offset and part. No input makes this
// package panic.
package ckptfmt
