package pickle

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxLong bounds the bytes of a whole number: its decimal digits take time.
const maxLong = 4096

// long does LONG1 and LONG4: a length, then a number in two's complement. What does
// not fit into an int64 is a [*big.Int].
func (u *unpickler) long(op byte) error {
	size := 1
	if op == 0x8b {
		size = 4
	}
	n, err := u.number(size)
	if err != nil {
		return err
	}
	if n > maxLong {
		return fmt.Errorf("a whole number has %d bytes", n)
	}
	if n <= 8 {
		b, err := u.next(int(n))
		if err != nil {
			return err
		}
		return u.push(signed(b))
	}
	b, err := u.next(int(n))
	if err != nil {
		return err
	}
	digits := []byte(b)
	slices.Reverse(digits)
	v := new(big.Int).SetBytes(digits)
	if digits[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	if v.IsInt64() {
		return u.push(v.Int64())
	}
	return u.push(v)
}

// sized reads bytes after a length of so many bytes.
func (u *unpickler) sized(size int) (string, error) {
	n, err := u.number(size)
	if err != nil {
		return "", err
	}
	if n > uint64(len(u.b)) {
		return "", ErrShort
	}
	return u.next(int(n))
}

// text does the opcodes of strings. Python can save halves of characters, which
// no other language has: those become U+FFFD.
func (u *unpickler) text(op byte) error {
	size := 4 // of X and T
	switch op {
	case 0x8c, 'U':
		size = 1
	case 0x8d:
		size = 8
	}
	text, err := u.sized(size)
	if err != nil {
		return err
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return u.push(u.word(text))
}

// word returns a string as a value. A few short ones, such as "cpu", are in a pickle
// once for each tensor, and become one value.
func (u *unpickler) word(text string) any {
	const longest = 8
	if len(text) == 0 || len(text) > longest {
		return u.kept(text)
	}
	place := &u.words[(int(text[0])*31+int(text[len(text)-1])*7+len(text))%len(u.words)]
	if known, ok := (*place).(string); !ok || known != text {
		*place = u.kept(text)
	}
	return *place
}

// bytes does the opcodes of bytes.
func (u *unpickler) bytes(op byte) error {
	size := 8
	switch op {
	case 'C':
		size = 1
	case 'B':
		size = 4
	}
	b, err := u.sized(size)
	if err != nil {
		return err
	}
	return u.push(Bytes(u.kept(b)))
}

// shuffle does POP, POP_MARK and DUP.
func (u *unpickler) shuffle(op byte) error {
	switch op {
	case '1':
		_, err := u.toMark()
		return err
	case '2':
		v, err := u.top()
		if err != nil {
			return err
		}
		return u.push(v)
	}
	if n := len(u.stack); n > 0 { // also a mark
		if u.stack[n-1] == (mark{}) {
			u.marks--
		}
		u.stack = u.stack[:n-1]
		return nil
	}
	return fmt.Errorf("the stack is empty")
}
