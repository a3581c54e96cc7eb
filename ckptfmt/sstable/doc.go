// Package sstable reads and writes the table files that hold the index of a
// TensorFlow V2 checkpoint and the whole of a V1 checkpoint: sorted pairs of
// byte strings, as LevelDB keeps them, with TensorFlow's sizes.
//
// A file is a row of blocks and a footer:
//
//	data block 0
//	data block 1
//	...
//	metaindex block      always empty in TensorFlow's files, never read
//	index block          for each data block: a key >= its last key, its handle
//	footer               48 bytes
//
// A block is followed by a trailer of 5 bytes, which is not counted in its
// handle:
//
//	block    | entries | restart offsets: uint32 each | number of restarts: uint32 |
//	trailer  | compression: byte, 0 none, 1 snappy | masked CRC-32C of block and that byte: uint32 |
//
// An entry omits the part that its key shares with the previous one. At a
// restart, every 16th entry (every one in the index block), the key is whole,
// so that a search can begin there:
//
//	entry    | shared: varint | unshared: varint | value length: varint | unshared key bytes | value |
//
// For example the keys "weights" and "weights_1" with the values "A", "B":
//
//	00 07 01 w e i g h t s A
//	07 02 01 _ 1 B
//	00 00 00 00   01 00 00 00
//
// The footer holds two handles, each the varints of offset and size:
//
//	footer   | metaindex handle | index handle | zeros up to 40 bytes | 57 fb 80 8b 24 75 47 db |
//
// Integers are little-endian. Writing:
//
//	w := sstable.NewWriter(f, nil)
//	for _, e := range sorted {
//		if err := w.Add(e.Key, e.Value); err != nil { ... }
//	}
//	err := w.Finish()
//
// Reading:
//
//	r, err := sstable.NewReader(f, size, nil)
//	value, err := r.Get([]byte("weights"))
package sstable
