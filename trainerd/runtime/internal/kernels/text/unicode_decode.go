package text

import (
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops between strings in some encoding and the code points of their characters.
var unicodeCodesOps = exec.OpTable{
	"UnicodeDecode":            {Build: buildUnicodeDecode},
	"UnicodeDecodeWithOffsets": {Build: buildUnicodeDecode},
	"UnicodeEncode":            {Build: buildUnicodeEncode},
	"UnicodeTranscode":         {Build: buildUnicodeTranscode},
	"UnicodeScript":            {Build: exec.WithoutAttrs(elem.Convert(scriptOf))},
}

// malformed says what becomes of bytes, and of code points, that are not a character.
type malformed struct {
	strict, ignore bool
	instead        rune
	controls       bool // are replaced, too
}

func malformedOf(b *exec.OpConstruction) malformed {
	m := malformed{instead: rune(b.Int("replacement_char"))}
	switch errors := b.String("errors"); errors {
	case "strict":
		m.strict = true
	case "ignore":
		m.ignore = true
	case "replace":
	default:
		b.Fail("attribute errors is %q", errors)
	}
	if !utf8.ValidRune(m.instead) {
		b.Fail("replacement_char %#x is no character", m.instead)
	}
	return m
}

// wrong reports whether a character is not to be taken as it is.
func (m *malformed) wrong(r rune, broken bool) bool { return broken || m.controls && r <= 0x1f }

var errMalformed = errors.New("invalid formatting on input string")

// decoder returns the first character of a string that is not empty, how many bytes it takes,
// and whether they are not a character.
type decoder func(s []byte) (r rune, n int, broken bool)

// decoders are those of the encodings that have a name of their own; charmaps has the others.
var decoders = map[string]decoder{
	"UTF-8": decodeUTF8, "utf-8": decodeUTF8, "UTF8": decodeUTF8, "utf8": decodeUTF8,
	"UTF-16-BE": decodeUTF16, "UTF-16BE": decodeUTF16, "UTF-16-LE": littleEndian(2, decodeUTF16), "UTF-16LE": littleEndian(2, decodeUTF16),
	"UTF-32-BE": decodeUTF32, "UTF-32BE": decodeUTF32, "UTF-32-LE": littleEndian(4, decodeUTF32), "UTF-32LE": littleEndian(4, decodeUTF32),
	"US-ASCII": decodeASCII, "ASCII": decodeASCII,
}

func decoderOf(name string) (decoder, error) {
	if d, ok := decoders[name]; ok {
		return d, nil
	}
	if m, ok := charmaps[name]; ok {
		return func(s []byte) (rune, int, bool) {
			r := m.DecodeByte(s[0])
			return r, 1, r == utf8.RuneError
		}, nil
	}
	return nil, fmt.Errorf("no kernel for input_encoding=%q", name)
}

// charmaps are the encodings whose characters have one byte each.
var charmaps = map[string]*charmap.Charmap{
	"ISO-8859-1": charmap.ISO8859_1, "LATIN1": charmap.ISO8859_1, "ISO-8859-2": charmap.ISO8859_2, "ISO-8859-3": charmap.ISO8859_3,
	"ISO-8859-4": charmap.ISO8859_4, "ISO-8859-5": charmap.ISO8859_5, "ISO-8859-6": charmap.ISO8859_6, "ISO-8859-7": charmap.ISO8859_7,
	"ISO-8859-8": charmap.ISO8859_8, "ISO-8859-9": charmap.ISO8859_9, "ISO-8859-13": charmap.ISO8859_13, "ISO-8859-15": charmap.ISO8859_15,
	"KOI8-R": charmap.KOI8R, "KOI8-U": charmap.KOI8U, "WINDOWS-1250": charmap.Windows1250, "WINDOWS-1251": charmap.Windows1251,
	"WINDOWS-1252": charmap.Windows1252, "WINDOWS-1253": charmap.Windows1253, "WINDOWS-1254": charmap.Windows1254,
}

func decodeUTF8(s []byte) (rune, int, bool) {
	r, n := utf8.DecodeRune(s)
	if r == utf8.RuneError && n == 1 {
		return r, brokenLength(s), true
	}
	return r, n, false
}

func decodeUTF16(s []byte) (rune, int, bool) {
	if len(s) < 2 {
		return utf8.RuneError, len(s), true
	}
	r := rune(s[0])<<8 | rune(s[1])
	if !utf16.IsSurrogate(r) {
		return r, 2, false
	}
	if len(s) < 4 {
		return utf8.RuneError, min(len(s), 2+len(s)%2), true
	}
	if r = utf16.DecodeRune(r, rune(s[2])<<8|rune(s[3])); r == utf8.RuneError {
		return r, 2, true
	}
	return r, 4, false
}

func decodeUTF32(s []byte) (rune, int, bool) {
	if len(s) < 4 {
		return utf8.RuneError, len(s), true
	}
	r := rune(s[0])<<24 | rune(s[1])<<16 | rune(s[2])<<8 | rune(s[3])
	if !utf8.ValidRune(r) {
		return utf8.RuneError, 4, true
	}
	return r, 4, false
}

func decodeASCII(s []byte) (rune, int, bool) {
	if s[0] >= utf8.RuneSelf {
		return utf8.RuneError, 1, true
	}
	return rune(s[0]), 1, false
}

// littleEndian is the decoder of units of some bytes, the least one first.
func littleEndian(unit int, big decoder) decoder {
	return func(s []byte) (rune, int, bool) {
		var turned [4]byte
		n := min(len(s), len(turned))
		for i := range n {
			at := i - i%unit + unit - 1 - i%unit
			if at >= n {
				at = i
			}
			turned[i] = s[at]
		}
		return big(turned[:n])
	}
}

func buildUnicodeDecode(b *exec.OpConstruction) (exec.Kernel, error) {
	decode, err := decoderOf(b.String("input_encoding"))
	if err != nil {
		return nil, err
	}
	m, splits, offsets := malformedOf(b), b.IndexType("Tsplits"), b.Op() == "UnicodeDecodeWithOffsets"
	m.controls = b.Bool("replace_control_characters")
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		rows := c.Out(0, splits, x.NumElements()+1)
		exec.SetInt(rows, 0, 0)
		var codes []int32
		var starts []int64
		for i, s := range x.Strings {
			for at := 0; at < len(s); {
				r, n, broken := decode(s[at:])
				start := at
				at += n
				if broken && m.strict {
					return c.Invalid("%v", errMalformed)
				}
				if m.wrong(r, broken) {
					if m.ignore {
						continue
					}
					r = m.instead
				}
				codes, starts = append(codes, r), append(starts, int64(start))
			}
			exec.SetInt(rows, i+1, len(codes))
		}
		copy(exec.Elems[int32](c.Out(1, exec.Int32, len(codes))), codes)
		if offsets {
			copy(exec.Elems[int64](c.Out(2, exec.Int64, len(starts))), starts)
		}
		return nil
	}, nil
}

// encoders append a character.
var encoders = map[string]func(d []byte, r rune) []byte{
	"UTF-8":     utf8.AppendRune,
	"UTF-16-BE": appendUTF16,
	"UTF-32-BE": func(d []byte, r rune) []byte { return append(d, byte(r>>24), byte(r>>16), byte(r>>8), byte(r)) },
}

func appendUTF16(d []byte, r rune) []byte {
	for _, u := range utf16.AppendRune(nil, r) {
		d = append(d, byte(u>>8), byte(u))
	}
	return d
}

func encoderOf(b *exec.OpConstruction) func(d []byte, r rune) []byte {
	e, ok := encoders[b.String("output_encoding")]
	if !ok {
		b.Fail("attribute output_encoding is %q", b.String("output_encoding"))
	}
	return e
}

func buildUnicodeTranscode(b *exec.OpConstruction) (exec.Kernel, error) {
	decode, err := decoderOf(b.String("input_encoding"))
	if err != nil {
		return nil, err
	}
	m, encode := malformedOf(b), encoderOf(b)
	m.controls = b.Bool("replace_control_characters")
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := c.OutLike(0, exec.String, x)
		for i, s := range x.Strings {
			out := []byte{}
			for len(s) > 0 {
				r, n, broken := decode(s)
				s = s[n:]
				wrong := m.wrong(r, broken)
				switch {
				case wrong && m.strict:
					return c.Invalid("%v", errMalformed)
				case wrong && m.ignore:
					continue
				case wrong:
					r = m.instead
				}
				out = encode(out, r)
			}
			d.Strings[i] = out
		}
		return nil
	}, nil
}

func buildUnicodeEncode(b *exec.OpConstruction) (exec.Kernel, error) {
	m, encode := malformedOf(b), encoderOf(b)
	return func(c *exec.KernelContext) error {
		codes := exec.Elems[int32](c.In(0))
		splits, err := elem.RowSplits(c, 1, len(codes))
		if err != nil {
			return err
		}
		d := c.Out(0, exec.String, len(splits)-1)
		for i := range d.Strings {
			out := []byte{}
			for _, r := range codes[splits[i]:splits[i+1]] {
				if !utf8.ValidRune(r) {
					switch {
					case m.strict:
						return c.Invalid("Code point %#x is out of range for Unicode, or a noncharacter.", r)
					case m.ignore:
						continue
					}
					r = m.instead
				}
				out = encode(out, r)
			}
			d.Strings[i] = out
		}
		return nil
	}, nil
}
