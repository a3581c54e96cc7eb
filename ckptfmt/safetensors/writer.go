package safetensors

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Write writes tensors and metadata to w. It reads one tensor after another
// and keeps none in memory.
func Write(ctx context.Context, w io.Writer, parts []ckptfmt.Part, metadata map[string]string) error {
	parts = slices.Clone(parts)
	for _, p := range parts {
		if err := Check(p); err != nil {
			return err
		}
	}
	slices.SortFunc(parts, func(a, b ckptfmt.Part) int {
		return cmp.Or(cmp.Compare(rank(&b), rank(&a)), cmp.Compare(a.Name, b.Name))
	})
	header, err := header(parts, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))); err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := copyPart(w, p); err != nil {
			return err
		}
	}
	return nil
}

func copyPart(w io.Writer, p ckptfmt.Part) error {
	size, err := p.Size()
	if err != nil {
		return err
	}
	r, err := p.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(w, r)
	if err == nil && n != size {
		err = fmt.Errorf("tensor %q has %d bytes, its shape %v needs %d", p.Name, n, p.Shape, size)
	}
	return err
}

// header returns the header of sorted parts, filled up.
func header(parts []ckptfmt.Part, metadata map[string]string) ([]byte, error) {
	b := []byte{'{'}
	if len(metadata) > 0 {
		b = append(b, `"`+metadataKey+`":{`...)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, valid(key)), ':')
			b = appendString(b, valid(metadata[key]))
		}
		b = append(b, '}')
	}
	offset := int64(0)
	for i, p := range parts {
		if i > 0 && parts[i-1].Name == p.Name {
			return nil, fmt.Errorf("%w: %q", ckptfmt.ErrExists, p.Name)
		}
		size, err := p.Size()
		if err != nil {
			return nil, err
		}
		if offset > math.MaxInt64-size {
			return nil, fmt.Errorf("tensor %q: the tensors are larger than any file", p.Name)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendEntry(b, p, offset, offset+size)
		offset += size
	}
	b = append(b, '}')
	for len(b)%headerAlign != 0 {
		b = append(b, ' ')
	}
	if len(b) > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes is larger than the library reads; convert fewer tensors at once", len(b))
	}
	return b, nil
}

func appendEntry(b []byte, p ckptfmt.Part, start, end int64) []byte {
	b = appendString(b, p.Name)
	b = append(b, `:{"dtype":"`+typeName(&p)+`","shape":[`...)
	for i, d := range p.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	b = append(b, `],"data_offsets":[`...)
	b = strconv.AppendInt(b, start, 10)
	b = strconv.AppendInt(append(b, ','), end, 10)
	return append(b, "]}"...)
}

// valid replaces bytes of a text that are not UTF-8, with which the library refuses a file.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// short are the characters that have an escape of two.
var short = map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendString writes JSON as the library does: only what must be escaped is.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		switch esc, ok := short[c]; {
		case ok:
			b = append(b, '\\', esc)
		case c < ' ':
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
