package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Strings of NumPy's kinds S and U have one width, and zeros after their
// text, so that a text cannot end in a zero. Raw bytes (V) can.

// stringKind returns the kind of a name such as S12 or U3.
func stringKind(name string) (kind, bool) {
	unit := 1
	if name[0] == 'U' {
		unit = 4 // code points
	} else if name[0] != 'S' && name[0] != 'a' {
		return kind{}, false
	}
	n, ok := parseWidth(name[1:])
	return kind{tfpb.DataType_DT_STRING, n * unit, unit}, ok
}

// rawWidth returns the width of a name such as V12.
func rawWidth(name string) (int, bool) {
	if name[0] != 'V' {
		return 0, false
	}
	return parseWidth(name[1:])
}

func parseWidth(digits string) (n int, ok bool) {
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' || n > maxWidth {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, 0 < n && n <= maxWidth
}

// maxWidth bounds the strings of an array.
const maxWidth = 1 << 28

// Strings reads the elements of an array of strings: bytes, or text as UTF-8.
func (e *Elements) Strings() ([][]byte, error) {
	start, width := e.offset, e.header.kind.size
	data, err := e.all()
	if err != nil {
		return nil, err
	}
	if e.header.fortran {
		data = rowMajor(data, e.Shape, width)
	}
	out := make([][]byte, 0, len(data)/width)
	for ; len(data) >= width; data = data[width:] {
		if e.header.raw {
			out = append(out, data[:width:width])
			continue
		}
		if e.header.kind.unit == 1 {
			out = append(out, bytes.TrimRight(data[:width], "\x00"))
			continue
		}
		s, ok := codePoints(data[:width])
		if !ok {
			return nil, &Error{Offset: start + int64(len(out)*width), Reason: fmt.Sprintf("string %d is no Unicode text", len(out))}
		}
		out = append(out, s)
	}
	return out, nil
}

// codePoints returns little-endian UTF-32 as UTF-8, without zeros at its end.
func codePoints(b []byte) ([]byte, bool) {
	for len(b) >= 4 && binary.LittleEndian.Uint32(b[len(b)-4:]) == 0 {
		b = b[:len(b)-4]
	}
	var out []byte
	for ; len(b) >= 4; b = b[4:] {
		r := binary.LittleEndian.Uint32(b)
		if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return nil, false
		}
		out = utf8.AppendRune(out, rune(r))
	}
	return out, true
}

// Width returns the width that an array of these strings has, and false when
// one of them ends in a zero byte, which the file could not tell.
func Width(list [][]byte) (int, bool) {
	width := 1
	for _, s := range list {
		if len(s) > 0 && s[len(s)-1] == 0 {
			return 0, false
		}
		width = max(width, len(s))
	}
	return width, true
}
