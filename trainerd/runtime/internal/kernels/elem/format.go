package elem

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// AppendElement renders one element for summaries and messages: numbers with as
// few digits as TensorFlow needs to read them back, bools as 0 and 1.
func AppendElement(t *exec.Tensor, dst []byte, i int) []byte {
	switch t.DType {
	case exec.String:
		return append(AppendEscaped(append(dst, '"'), t.Strings[i]), '"')
	case exec.Bool:
		return append(dst, '0'+OneIf[byte](exec.Elems[bool](t)[i]))
	case exec.Float32:
		return appendShort(dst, t.FloatAt(i), 32)
	case exec.Float64:
		return appendShort(dst, t.FloatAt(i), 64)
	case exec.Half, exec.Bfloat16:
		return appendShort(dst, float64(exec.Widener(t.DType)(exec.Elems[uint16](t)[i])), 32)
	}
	if v, ok := SignedAt(t, i); ok {
		return strconv.AppendInt(dst, v, 10)
	}
	if exec.RealTypes.Has(t.DType) {
		return strconv.AppendUint(dst, UnsignedAt(t, i), 10)
	}
	return append(dst, exec.TypeName(t.DType)...)
}

// appendShort renders v with the digits that its type always keeps, or with
// those that it needs at most where the short form is another number.
func appendShort(dst []byte, v float64, bits int) []byte {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return append(dst, nonFinite(v)...)
	}
	short, full := 6, 9
	if bits == 64 {
		short, full = 15, 17
	}
	out := strconv.AppendFloat(dst, v, 'g', short, 64)
	if back, err := strconv.ParseFloat(string(out[len(dst):]), bits); err == nil && back == v {
		return out
	}
	return strconv.AppendFloat(dst, v, 'g', full, 64)
}

// nonFinite renders an infinity, or a NaN without its sign.
func nonFinite(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case v < 0:
		return "-inf"
	}
	return "inf"
}

// ParseNumber stores the number that text spells as element i of t.
func ParseNumber(t *exec.Tensor, i int, text []byte) (err error) {
	s := unsafe.String(unsafe.SliceData(text), len(text)) // read, and not kept
	var f float64
	var n int64
	var u uint64
	switch t.DType {
	case exec.Float32:
		f, err = parseReal(s, 32)
		exec.Elems[float32](t)[i] = float32(f)
	case exec.Float64:
		f, err = parseReal(s, 64)
		exec.Elems[float64](t)[i] = f
	case exec.Int32:
		n, err = strconv.ParseInt(s, 10, 32)
		exec.Elems[int32](t)[i] = int32(n)
	case exec.Int64:
		n, err = strconv.ParseInt(s, 10, 64)
		exec.Elems[int64](t)[i] = n
	case exec.Uint32:
		u, err = strconv.ParseUint(s, 10, 32)
		exec.Elems[uint32](t)[i] = uint32(u)
	case exec.Uint64:
		u, err = strconv.ParseUint(s, 10, 64)
		exec.Elems[uint64](t)[i] = u
	default:
		err = fmt.Errorf("type %s", exec.TypeName(t.DType))
	}
	return err
}

// parseReal parses a real number as TensorFlow does: one too large is an
// infinity, a NaN may have a sign, and hexadecimal digits are an integer.
func parseReal(s string, bits int) (float64, error) {
	if isDecimal(s) {
		f, err := strconv.ParseFloat(s, bits)
		if errors.Is(err, strconv.ErrRange) {
			err = nil
		}
		return f, err
	}
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || strings.Contains(s, "_") {
		return 0, strconv.ErrSyntax
	}
	if strings.EqualFold(digits, "nan") {
		return math.NaN(), nil
	}
	if strings.HasPrefix(strings.ToLower(digits), "0x") && !strings.ContainsAny(digits, "pP") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, bits)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return f, err
}

// isDecimal reports whether s has nothing but what ordinary numbers are made of.
func isDecimal(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return true
}

// AppendEscaped escapes as C does in ASCII; other bytes stay.
func AppendEscaped(dst, s []byte) []byte {
	for _, ch := range s {
		switch {
		case ch == '\n':
			dst = append(dst, `\n`...)
		case ch == '\r':
			dst = append(dst, `\r`...)
		case ch == '\t':
			dst = append(dst, `\t`...)
		case ch == '"' || ch == '\'' || ch == '\\':
			dst = append(dst, '\\', ch)
		case ch < ' ' || ch == 0x7f:
			dst = fmt.Appendf(dst, `\%03o`, ch)
		default:
			dst = append(dst, ch)
		}
	}
	return dst
}
