// Package hdf5 reads the part of HDF5 that Keras and h5py use for tensors, and
// writes files that both read.
//
// # Format
//
// A file is a tree of objects that refer to each other by addresses. All numbers
// are little-endian; addresses and lengths have the widths given in the
// superblock (usually 8 bytes), and an address of all ones means "none".
//
//	superblock    89 'H' 'D' 'F' 0d 0a 1a 0a | version 0..3 | widths | root group
//	              at offset 0, 512, 1024, ...; what is before it is the user's
//	object header version 1: 01 00 | messages | references | size
//	              version 2: "OHDR" 02 flags | size | ... | lookup3 of the block
//	  message     type | size | flags | body; a message may continue elsewhere
//	old group     "TREE" nodes -> "SNOD" -> {name in "HEAP", header of the object}
//	new group     link messages, or "FRHP" with links that a "BTHD" tree orders
//	dataset       dataspace, datatype, layout, filters, fill value: all messages
//	  contiguous  address | size
//	  compact     the elements, within the message
//	  chunked     "TREE" (version 1), or one chunk, a row of chunks, "FAHD", "EAHD", "BTHD"
//	attribute     name | datatype | dataspace | value, within a message or a heap
//	global heap   "GCOL": strings of variable length
//
// Superblocks of version 2 and 3, headers of version 2 and the blocks of new
// groups have checksums (Jenkins' lookup3), which are verified when they are read.
// Elements have one only if the Fletcher-32 filter is set.
//
// # What is understood
//
// Whole numbers, floats of IEEE, bfloat16 and float8, bools (an enumeration of two
// values, as h5py writes them; others are whole numbers), complex numbers (a compound of r and i), strings
// of fixed and of variable length. Filters: deflate, shuffle, Fletcher-32, LZF. A
// dataset of another type, or with another filter, is listed with the reason why
// it cannot be read, and does not affect the others. Soft links are skipped,
// since their targets are in the file anyway, and so are huge attributes.
// Messages shared in a heap, virtual datasets and references to other files are
// errors.
//
// Nothing in a file is trusted before it is checked: objects that refer to each other in a circle,
// addresses outside the file, trees deeper than any that HDF5 makes, and sizes that no file of that
// length can hold are a [*ckptfmt.CorruptError] with an offset. The memory used to open a file is
// bounded by its size.
//
// NewReader and Open read the objects of a large group by a goroutine for each processor;
// these have ended when it returns.
//
// The layout is that of the HDF5 File Format Specification, version 3.0, of The
// HDF Group.
//
//	r, err := hdf5.Open("model.weights.h5")
//	if err != nil { ... }
//	defer r.Close()
//	for _, p := range r.Parts() { ... } // "layers/dense/vars/0"
//	names, err := r.Attr("layers/dense/vars", "name")
package hdf5

// Magic begins a superblock.
const Magic = "\x89HDF\r\n\x1a\n"

// Wire format: signatures of blocks.
const (
	sigHeader      = "OHDR"
	sigHeaderNext  = "OCHK"
	sigTree        = "TREE"
	sigSymbols     = "SNOD"
	sigLocalHeap   = "HEAP"
	sigGlobalHeap  = "GCOL"
	sigFractalHeap = "FRHP"
	sigDirect      = "FHDB"
	sigIndirect    = "FHIB"
	sigTree2       = "BTHD"
	sigTree2Inner  = "BTIN"
	sigTree2Leaf   = "BTLF"
	sigArray       = "FAHD"
	sigArrayBlock  = "FADB"

	sigGrowing      = "EAHD"
	sigGrowingIndex = "EAIB"
	sigGrowingSuper = "EASB"
	sigGrowingBlock = "EADB"
)

// Wire format: types of messages.
const (
	msgDataspace    = 0x01
	msgLinkInfo     = 0x02
	msgDatatype     = 0x03
	msgOldFill      = 0x04
	msgFill         = 0x05
	msgLink         = 0x06
	msgExternalData = 0x07
	msgLayout       = 0x08
	msgFilters      = 0x0b
	msgAttribute    = 0x0c
	msgContinuation = 0x10
	msgSymbolTable  = 0x11
	msgAttrInfo     = 0x15
)

// Limits of what a file may ask for.
const (
	maxDepth     = 100       // of groups in groups, and of trees
	maxNames     = 256 << 20 // bytes of all paths
	maxRank      = 32
	maxChunk     = 1 << 30 // bytes
	maxSlab      = 64 << 20
	maxString    = 1 << 30
	maxAttribute = 64 << 20
	checksumSize = 4
)
