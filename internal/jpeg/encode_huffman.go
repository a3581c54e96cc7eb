package jpeg

import (
	"encoding/hex"
	"math/bits"
)

// codeTable is a Huffman table: the number of codes of each length and their
// values, as in a file, and by value the code.
type codeTable struct {
	counts []byte // 16
	values []byte
	code   [256]uint16
	size   [256]byte
}

func newCodeTable(counts, values []byte) *codeTable {
	t := &codeTable{counts: counts, values: values}
	code, at := uint16(0), 0
	for n, count := range counts {
		for range count {
			t.code[values[at]], t.size[values[at]] = code, byte(n+1)
			code++
			at++
		}
		code <<= 1
	}
	return t
}

// standardTable returns a table of ITU T.81, annex K: class 0 of DC values, 1 of
// others; of brightness or of colour.
func standardTable(class, table int) *codeTable {
	text := [2][2][2]string{{
		{"00010501010101010100000000000000", "000102030405060708090a0b"},
		{"00030101010101010101010000000000", "000102030405060708090a0b"},
	}, {
		{"0002010303020403050504040000017d", "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a2526" +
			"2728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a83848586" +
			"8788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8" +
			"d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa"},
		{"00020102040403040705040400010277", "0001020311040521310612415107617113223281081442" +
			"91a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a434445464748494a53545556" +
			"5758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aa" +
			"b2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa"},
	}}[class][table]
	counts, _ := hex.DecodeString(text[0])
	values, _ := hex.DecodeString(text[1])
	return newCodeTable(counts, values)
}

// frequencies count how often a table's values occur. The last one is that of the
// code of ones alone, which files must not have.
type frequencies [257]int

// maxCodeBits is the longest code that Huffman's algorithm may give here before
// the lengths are cut to 16.
const maxCodeBits = 256

// table returns the best table, by the procedure of ITU T.81, annex K.2.
func (f *frequencies) table() *codeTable {
	sizes := f.codeSizes()
	var lengths [maxCodeBits + 1]int
	for _, n := range sizes {
		if n > 0 {
			lengths[n]++
		}
	}
	for n := maxCodeBits; n > 16; n-- {
		for lengths[n] > 0 {
			shorter := n - 2
			for lengths[shorter] == 0 {
				shorter--
			}
			lengths[n] -= 2
			lengths[n-1]++
			lengths[shorter+1] += 2
			lengths[shorter]--
		}
	}
	longest := 16
	for lengths[longest] == 0 {
		longest--
	}
	lengths[longest]--
	counts := make([]byte, 16)
	for n := range counts {
		counts[n] = byte(lengths[n+1])
	}
	var values []byte
	for n := 1; n <= maxCodeBits; n++ {
		for v := range 256 {
			if sizes[v] == n {
				values = append(values, byte(v))
			}
		}
	}
	return newCodeTable(counts, values)
}

// codeSizes returns the lengths of the codes of Huffman's algorithm: the two
// rarest are joined again and again, of equal ones the last first.
func (f *frequencies) codeSizes() (sizes [257]int) {
	freq := *f
	freq[256] = 1
	var next [257]int // in the same tree
	for i := range next {
		next[i] = -1
	}
	rarest := func(but int) int {
		found := -1
		for i, n := range freq {
			if n > 0 && i != but && (found < 0 || n <= freq[found]) {
				found = i
			}
		}
		return found
	}
	for {
		a := rarest(-1)
		b := rarest(a)
		if b < 0 {
			return sizes
		}
		freq[a] += freq[b]
		freq[b] = 0
		last := a
		for i := a; i >= 0; i = next[i] {
			sizes[i]++
			last = i
		}
		next[last] = b
		for i := b; i >= 0; i = next[i] {
			sizes[i]++
		}
	}
}

// entropy writes symbols, or counts them when the tables are yet to be made.
type entropy struct {
	counting bool
	counts   [2][2]frequencies // by class and table
	tables   [2][2]*codeTable
	out      []byte
	acc      uint64
	n        uint // bits in acc

	// Of a progressive scan of AC values: blocks that end without another value,
	// and the bits of values that they refine.
	eobRun     int
	correction []byte
}

// begin begins to count, or to write to out.
func (w *entropy) begin(counting bool, out []byte) {
	*w = entropy{counting: counting, out: out, tables: w.tables, counts: w.counts}
	if counting {
		w.counts = [2][2]frequencies{}
	}
}

// symbol writes a code, and extra bits.
func (w *entropy) symbol(class, table int, value byte, extra uint32, n uint) {
	if w.counting {
		w.counts[class][table][value]++
		return
	}
	t := w.tables[class][table]
	w.bits(uint32(t.code[value]), uint(t.size[value]))
	w.bits(extra, n)
}

// bits writes the last n bits of v.
func (w *entropy) bits(v uint32, n uint) {
	if w.counting || n == 0 {
		return
	}
	w.acc = w.acc<<n | uint64(v)&(1<<n-1)
	for w.n += n; w.n >= 8; w.n -= 8 {
		b := byte(w.acc >> (w.n - 8))
		w.out = append(w.out, b)
		if b == 0xff {
			w.out = append(w.out, 0)
		}
	}
}

// flush fills the last byte with ones.
func (w *entropy) flush() { w.bits(0x7f, 7) }

// magnitude returns the number of bits of a value, and the bits that a file has.
func magnitude(v int) (n uint, extra uint32) {
	if v < 0 {
		n = uint(bits.Len(uint(-v)))
		return n, uint32(v - 1)
	}
	return uint(bits.Len(uint(v))), uint32(v)
}
