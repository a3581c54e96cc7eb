package npz

import (
	"bytes"
	"encoding/binary"

	"github.com/trainerd/trainerd/ckptfmt/internal/readahead"
	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
	"github.com/trainerd/trainerd/internal/npy"
	tfpb "github.com/trainerd/trainerd/proto"
)

// head is what the header of an array says.
type head struct {
	dtype tfpb.DataType
	shape []int64
	size  int64 // of an array with that header, and the header
}

// heads reads the headers of stored arrays. Most of an archive's arrays have a header
// that another one has too, so each is parsed once.
type heads struct {
	archive *zipdir.Archive
	ahead   *readahead.Reader
	known   map[string]head // by their bytes
	buf     [windowSize]byte
}

// windowSize is how much is read of an array: NumPy's header of one of a few
// dimensions is 128 bytes. maxKnown bounds how many are kept.
const (
	windowSize = 512
	maxKnown   = 4096
)

func newHeads(archive *zipdir.Archive, ahead *readahead.Reader) *heads {
	return &heads{archive: archive, ahead: ahead, known: make(map[string]head)}
}

// of returns the header of an array, or false where reading the array as any other
// says what it is, or what is wrong.
func (h *heads) of(m *zipdir.Member) (head, bool) {
	if m.Method != zipdir.Stored || m.Packed != m.Size || m.Comment != "" {
		return head{}, false
	}
	start, err := h.archive.DataOffsetBy(h.ahead, m)
	if err != nil {
		return head{}, false
	}
	b := h.buf[:min(m.Size, windowSize)]
	if _, err := h.ahead.ReadAt(b, start); err != nil {
		return head{}, false
	}
	const prefix = 10
	if len(b) < prefix || b[6] != 1 {
		return head{}, false
	}
	end := prefix + int(binary.LittleEndian.Uint16(b[8:]))
	if end > len(b) {
		return head{}, false
	}
	if known, ok := h.known[string(b[:end])]; ok {
		return known, known.size == m.Size
	}
	e, err := npy.Open(bytes.NewReader(b), m.Size, tfpb.DataType_DT_INVALID)
	if err != nil {
		return head{}, false
	}
	got := head{dtype: e.DType, shape: e.Shape, size: m.Size}
	if len(h.known) < maxKnown {
		h.known[string(b[:end])] = got
	}
	return got, true
}
