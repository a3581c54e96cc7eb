package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops on the characters of strings, in ASCII or UTF-8.
var stringUnicodeOps = exec.OpTable{
	"StringLower":  {Build: buildStringCase(asciiLower, unicodeLower)},
	"StringUpper":  {Build: buildStringCase(asciiUpper, unicodeUpper)},
	"StringLength": {Build: buildStringLength},
	"Substr":       {Types: exec.Indices, Build: buildSubstr},
}

// buildStringCase builds an op that changes letters: those of ASCII, or of
// Unicode when the encoding says so.
func buildStringCase(ascii, unicode func([]byte) []byte) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		switch encoding := b.String("encoding"); encoding {
		case "":
			return elem.Unary(ascii), nil
		case "utf-8":
			return elem.Unary(unicode), nil
		default:
			return nil, fmt.Errorf("no kernel for encoding=%q", encoding)
		}
	}
}

func asciiLower(s []byte) []byte { return mapLetters(s, 'A', 'Z') }
func asciiUpper(s []byte) []byte { return mapLetters(s, 'a', 'z') }

// mapLetters changes the case of the ASCII letters from first to last.
func mapLetters(s []byte, first, last byte) []byte {
	out := bytes.Clone(s)
	for i, ch := range out {
		if ch >= first && ch <= last {
			out[i] = ch ^ 0x20
		}
	}
	return out
}

// cString returns s up to its first zero byte: TensorFlow hands some strings to
// libraries as C's.
func cString(s []byte) []byte {
	before, _, _ := bytes.Cut(s, []byte{0})
	return before
}

// decodeText decodes UTF-8. What is not UTF-8 becomes U+FFFD, once for each
// longest start of a character.
func decodeText(s []byte) []rune {
	var out []rune
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			n = brokenLength(s)
		}
		out = append(out, r)
		s = s[n:]
	}
	return out
}

// brokenLength returns how many bytes of s could begin a character that the
// next byte does not continue, at least 1.
func brokenLength(s []byte) int {
	for n := min(3, len(s)); n > 1; n-- {
		if couldBegin(s[:n]) {
			return n
		}
	}
	return 1
}

// couldBegin reports whether some bytes after s make it one character.
func couldBegin(s []byte) bool {
	for _, next := range []byte{0x80, 0x90, 0xa0} {
		whole := append(bytes.Clone(s), next, 0x80, 0x80)
		if r, n := utf8.DecodeRune(whole); r != utf8.RuneError && n > len(s) {
			return true
		}
	}
	return false
}

func unicodeUpper(s []byte) []byte {
	out := []byte{}
	for _, r := range decodeText(cString(s)) {
		if long, ok := longUpper[r]; ok {
			out = append(out, long...)
			continue
		}
		out = utf8.AppendRune(out, unicode.ToUpper(r))
	}
	return out
}

func unicodeLower(s []byte) []byte {
	out := []byte{}
	text := decodeText(cString(s))
	for i, r := range text {
		switch {
		case r == 'İ':
			out = append(out, "i\u0307"...)
		case r == 'Σ' && endsWord(text, i):
			out = append(out, "ς"...)
		default:
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
	}
	return out
}

// endsWord reports whether the letter at i ends a word of several letters, where
// sigma has a form of its own.
func endsWord(text []rune, i int) bool {
	before, after := i-1, i+1
	for before >= 0 && caseIgnorable(text[before]) {
		before--
	}
	for after < len(text) && caseIgnorable(text[after]) {
		after++
	}
	return before >= 0 && cased(text[before]) && (after == len(text) || !cased(text[after]))
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// caseIgnorable is Unicode's property Case_Ignorable.
func caseIgnorable(r rune) bool {
	return strings.ContainsRune("'.:··՟״‘’․‧︓﹒﹕＇．：", r) || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

// longUpper are the characters whose upper case is several characters, by
// Unicode's SpecialCasing.txt.
var longUpper = map[rune]string{
	0xdf: "SS", 0x149: "\u02bcN", 0x1f0: "J\u030c", 0x390: "\u0399\u0308\u0301", 0x3b0: "\u03a5\u0308\u0301",
	0x587: "\u0535\u0552", 0x1e96: "H\u0331", 0x1e97: "T\u0308", 0x1e98: "W\u030a", 0x1e99: "Y\u030a",
	0x1e9a: "A\u02be", 0x1f50: "\u03a5\u0313", 0x1f52: "\u03a5\u0313\u0300", 0x1f54: "\u03a5\u0313\u0301",
	0x1f56: "\u03a5\u0313\u0342", 0x1f80: "\u1f08\u0399", 0x1f81: "\u1f09\u0399", 0x1f82: "\u1f0a\u0399",
	0x1f83: "\u1f0b\u0399", 0x1f84: "\u1f0c\u0399", 0x1f85: "\u1f0d\u0399", 0x1f86: "\u1f0e\u0399",
	0x1f87: "\u1f0f\u0399", 0x1f88: "\u1f08\u0399", 0x1f89: "\u1f09\u0399", 0x1f8a: "\u1f0a\u0399",
	0x1f8b: "\u1f0b\u0399", 0x1f8c: "\u1f0c\u0399", 0x1f8d: "\u1f0d\u0399", 0x1f8e: "\u1f0e\u0399",
	0x1f8f: "\u1f0f\u0399", 0x1f90: "\u1f28\u0399", 0x1f91: "\u1f29\u0399", 0x1f92: "\u1f2a\u0399",
	0x1f93: "\u1f2b\u0399", 0x1f94: "\u1f2c\u0399", 0x1f95: "\u1f2d\u0399", 0x1f96: "\u1f2e\u0399",
	0x1f97: "\u1f2f\u0399", 0x1f98: "\u1f28\u0399", 0x1f99: "\u1f29\u0399", 0x1f9a: "\u1f2a\u0399",
	0x1f9b: "\u1f2b\u0399", 0x1f9c: "\u1f2c\u0399", 0x1f9d: "\u1f2d\u0399", 0x1f9e: "\u1f2e\u0399",
	0x1f9f: "\u1f2f\u0399", 0x1fa0: "\u1f68\u0399", 0x1fa1: "\u1f69\u0399", 0x1fa2: "\u1f6a\u0399",
	0x1fa3: "\u1f6b\u0399", 0x1fa4: "\u1f6c\u0399", 0x1fa5: "\u1f6d\u0399", 0x1fa6: "\u1f6e\u0399",
	0x1fa7: "\u1f6f\u0399", 0x1fa8: "\u1f68\u0399", 0x1fa9: "\u1f69\u0399", 0x1faa: "\u1f6a\u0399",
	0x1fab: "\u1f6b\u0399", 0x1fac: "\u1f6c\u0399", 0x1fad: "\u1f6d\u0399", 0x1fae: "\u1f6e\u0399",
	0x1faf: "\u1f6f\u0399", 0x1fb2: "\u1fba\u0399", 0x1fb3: "\u0391\u0399", 0x1fb4: "\u0386\u0399",
	0x1fb6: "\u0391\u0342", 0x1fb7: "\u0391\u0342\u0399", 0x1fbc: "\u0391\u0399", 0x1fc2: "\u1fca\u0399",
	0x1fc3: "\u0397\u0399", 0x1fc4: "\u0389\u0399", 0x1fc6: "\u0397\u0342", 0x1fc7: "\u0397\u0342\u0399",
	0x1fcc: "\u0397\u0399", 0x1fd2: "\u0399\u0308\u0300", 0x1fd3: "\u0399\u0308\u0301", 0x1fd6: "\u0399\u0342",
	0x1fd7: "\u0399\u0308\u0342", 0x1fe2: "\u03a5\u0308\u0300", 0x1fe3: "\u03a5\u0308\u0301",
	0x1fe4: "\u03a1\u0313", 0x1fe6: "\u03a5\u0342", 0x1fe7: "\u03a5\u0308\u0342", 0x1ff2: "\u1ffa\u0399",
	0x1ff3: "\u03a9\u0399", 0x1ff4: "\u038f\u0399", 0x1ff6: "\u03a9\u0342", 0x1ff7: "\u03a9\u0342\u0399",
	0x1ffc: "\u03a9\u0399", 0xfb00: "FF", 0xfb01: "FI", 0xfb02: "FL", 0xfb03: "FFI", 0xfb04: "FFL",
	0xfb05: "ST", 0xfb06: "ST", 0xfb13: "\u0544\u0546", 0xfb14: "\u0544\u0535", 0xfb15: "\u0544\u053b",
	0xfb16: "\u054e\u0546", 0xfb17: "\u0544\u053d",
}

func buildStringLength(b *exec.OpConstruction) (exec.Kernel, error) {
	if stringUnit(b) == "BYTE" {
		return elem.Convert(func(s []byte) int32 { return int32(len(s)) }), nil
	}
	return elem.Convert(func(s []byte) int32 {
		n := int32(0)
		for _, ch := range s {
			n += elem.OneIf[int32](beginsCharacter(ch))
		}
		return n
	}), nil
}

// stringUnit returns what positions and lengths in strings count.
func stringUnit(b *exec.OpConstruction) string {
	unit := b.String("unit")
	if unit != "BYTE" && unit != "UTF8_CHAR" {
		b.Fail("no kernel for unit=%s", unit)
	}
	return unit
}

// beginsCharacter reports whether a byte is no later one of a character in
// UTF-8.
func beginsCharacter(ch byte) bool { return ch&0xc0 != 0x80 }

func buildSubstr(b *exec.OpConstruction) (exec.Kernel, error) {
	part := byteRange
	if stringUnit(b) == "UTF8_CHAR" {
		part = characterRange
	}
	return func(c *exec.KernelContext) error {
		x, pos, size := c.In(0), c.In(1), c.In(2)
		if !exec.SameShape(pos.Shape, size.Shape) {
			return c.Invalid("the positions are %s, the lengths %s", pos.Describe(), size.Describe())
		}
		at, shape, err := pairUp(x.Shape, pos.Shape)
		if err != nil {
			return c.Invalid("%v", err)
		}
		d := c.Out(0, exec.String, shape...)
		for i := range d.Strings {
			j, k := at(i)
			s := x.Strings[j]
			from, to, ok := part(s, pos.IntAt(k), size.IntAt(k))
			if !ok {
				return c.Invalid("position %d is outside element %d, %q", pos.IntAt(k), j, s)
			}
			d.Strings[i] = s[from:to]
		}
		return nil
	}, nil
}

// pairUp returns which elements of tensors of shapes x and y meet in element i
// of the result, and the result's shape.
func pairUp(x, y []int) (at func(i int) (int, int), shape []int, err error) {
	if len(y) == 0 {
		return func(i int) (int, int) { return i, 0 }, x, nil
	}
	if exec.SameShape(x, y) {
		return func(i int) (int, int) { return i, i }, x, nil
	}
	var b elem.Broadcast
	if err := b.Init(x, y); err != nil {
		return nil, nil, err
	}
	pairs := make([][2]int, exec.NumElements(b.Shape()))
	elem.Zip(&b, pairs, upTo(exec.NumElements(x)), upTo(exec.NumElements(y)), elem.LoopsOf(func(j, k int) [2]int { return [2]int{j, k} }))
	return func(i int) (int, int) { return pairs[i][0], pairs[i][1] }, b.Shape(), nil
}

// upTo returns the integers from 0 to n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// byteRange returns where the part of n bytes at pos begins and ends; a negative
// position counts from the end, a negative length is all that is left.
func byteRange(s []byte, pos, n int) (from, to int, ok bool) {
	if pos < 0 {
		pos += len(s)
	}
	if pos < 0 || pos > len(s) {
		return 0, 0, false
	}
	if n < 0 || n > len(s)-pos {
		n = len(s) - pos
	}
	return pos, pos + n, true
}

// characterRange is byteRange for characters, but that a negative length is
// none.
func characterRange(s []byte, pos, n int) (from, to int, ok bool) {
	var starts []int
	for i, ch := range s {
		if beginsCharacter(ch) {
			starts = append(starts, i)
		}
	}
	from, to, ok = byteRange(make([]byte, len(starts)), pos, max(0, n))
	if !ok {
		return 0, 0, false
	}
	starts = append(starts, len(s))
	return starts[from], starts[to], true
}
