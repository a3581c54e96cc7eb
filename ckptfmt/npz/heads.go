package npz

import (
	"bytes"
	"encoding/binary"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/readahead"
	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
	"github.com/trainerd/trainerd/internal/npy"
	tfpb "github.com/trainerd/trainerd/proto"
)

// head is the content of an array's header.
type head struct {
	dtype   tfpb.DataType
	shape   []int64
	bytes   int64  // of the elements; 0 for strings
	size    int64  // of an array with that header, and the header
	err     error  // why the array is not a tensor
	foreign string // the name of the type of its elements, if that is why
}

func newHead(e *npy.Elements, size int64) *head {
	h := &head{dtype: e.DType, shape: e.Shape, size: size}
	if n, err := dtype.NumElements(e.Shape); err == nil { // npy has found as much in the file
		h.bytes = n * dtype.Size(e.DType)
	}
	return h
}

// heads reads the headers of stored arrays. Most of an archive's arrays have a header
// that another one has too, so each is parsed once.
type heads struct {
	archive *zipdir.Archive
	ahead   *readahead.Reader
	known   map[string]*head // by their bytes
}

// windowSize is how much is read of an array: NumPy's header of one of a few
// dimensions is 128 bytes. maxKnown bounds how many are kept.
const (
	windowSize = 512
	maxKnown   = 4096
)

func newHeads(archive *zipdir.Archive, ahead *readahead.Reader) *heads {
	return &heads{archive: archive, ahead: ahead, known: make(map[string]*head)}
}

// of returns the header of an array, or nil if the array has to be read in the general way to find
// out what it is, or what is wrong.
func (h *heads) of(m *zipdir.Member) *head {
	if m.Method != zipdir.Stored || m.Packed != m.Size || m.Comment != "" {
		return nil
	}
	start, err := h.archive.DataOffsetBy(h.ahead.Peek, m)
	if err != nil {
		return nil
	}
	const prefix = 10
	b, err := h.ahead.Peek(start, int(min(m.Size, windowSize)))
	if err != nil || len(b) < prefix || b[6] != 1 {
		return nil
	}
	end := prefix + int(binary.LittleEndian.Uint16(b[8:]))
	if end > len(b) {
		return nil
	}
	if known := h.known[string(b[:end])]; known != nil {
		if known.size != m.Size {
			return nil
		}
		return known
	}
	e, err := npy.Open(bytes.NewReader(b), m.Size, tfpb.DataType_DT_INVALID)
	if err != nil {
		return nil
	}
	got := newHead(e, m.Size)
	if len(h.known) < maxKnown {
		h.known[string(b[:end])] = got
	}
	return got
}
