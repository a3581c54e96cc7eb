package jpeg

import "encoding/binary"

// lookBits is how many bits a code may have to be found at once.
const lookBits = 8

// huffman is a code table.
type huffman struct {
	look    [1 << lookBits]uint16 // by the next bits: length<<8 | value, 0 for longer codes
	maxCode [17]int32             // by length: the largest code, -1 for none
	first   [17]int32             // by length: what to add to a code for its place in values
	values  []byte
	// both has by the next bits a code of an AC coefficient and its value, where they
	// have no more bits together: value<<16 | run<<8 | bits, 0 for all others.
	both *[1 << bothBits]int32
}

// bothBits is how many bits a code and the value that follows it may have to be found
// at once.
const bothBits = 10

// findBoth makes the table both.
func (t *huffman) findBoth() {
	t.both = new([1 << bothBits]int32)
	for i := range t.both {
		e := t.look[i>>(bothBits-lookBits)]
		length, run, size := int(e>>8), int32(e>>4&15), int(e&15)
		if e == 0 || size == 0 || length+size > bothBits {
			continue
		}
		v := int32(i>>(bothBits-length-size)) & (1<<size - 1)
		t.both[i] = extend(v, size)<<16 | run<<8 | int32(length+size)
	}
}

// extend returns the number that s bits are, whose first one is 0 for the negative ones.
func extend(v int32, s int) int32 {
	if v < 1<<(s-1) {
		v += -1<<s + 1
	}
	return v
}

// newHuffman makes a table of the number of codes of each length, and their
// values. It is false if there are more codes than fit, or a difference of DC
// values has more than 15 bits.
func newHuffman(counts, values []byte, dc bool) (*huffman, bool) {
	t := &huffman{values: append([]byte(nil), values...)}
	code, at := int32(0), int32(0)
	for n := 1; n <= 16; n++ {
		t.first[n] = at - code
		for range counts[n-1] {
			if n <= lookBits {
				from := code << (lookBits - n)
				for i := from; i < from+1<<(lookBits-n) && i < 1<<lookBits; i++ {
					t.look[i] = uint16(n)<<8 | uint16(values[at])
				}
			}
			if dc && values[at] > 15 {
				return nil, false
			}
			code, at = code+1, at+1
		}
		t.maxCode[n] = -1
		if counts[n-1] > 0 {
			t.maxCode[n] = code - 1
		}
		if code > 1<<n {
			return nil, false
		}
		code <<= 1
	}
	return t, true
}

// bitReader reads entropy-coded data. At a marker more bits are zeros. It reads
// ahead as libjpeg does, which shows where the data ends without a marker: libjpeg
// stops as soon as it cannot read ahead.
type bitReader struct {
	data  []byte
	at    int
	acc   uint64
	n     int  // bits in acc
	fake  int  // how many of them, the last ones, are not in the data
	ended bool // the data ends without a marker

	// again has the reader go back to the start of the MCU at the end of the data,
	// which is how TensorFlow makes up what a truncated file lacks.
	again    bool
	mcu      int
	rewounds int
}

// maxRewound bounds how often the data of one MCU is read.
const maxRewound = 1000

// begin notes that an MCU begins.
func (b *bitReader) begin() { b.mcu, b.rewounds = b.at, 0 }

// starved reports whether bits were taken that are not in the data.
func (b *bitReader) starved() bool { return b.n < b.fake }

// fill reads ahead, and makes at least want bits available.
func (b *bitReader) fill(want int) {
	if b.fillWhole() {
		return
	}
	for b.n < 57 {
		if b.at >= len(b.data) && !b.rewind() {
			break
		}
		v := b.data[b.at]
		if v == 0xff {
			next := b.at + 1
			for next < len(b.data) && b.data[next] == 0xff {
				next++
			}
			if next >= len(b.data) {
				b.at = len(b.data)
				continue
			}
			if b.data[next] != 0 {
				break
			}
			b.at = next
		}
		b.at++
		b.acc, b.n = b.acc<<8|uint64(v), b.n+8
	}
	if b.n < want {
		b.acc, b.n, b.fake = b.acc<<32, b.n+32, b.fake+32
	}
}

// rewind goes back to the start of the MCU where that is wanted. It is false if
// there is nothing to read again.
func (b *bitReader) rewind() bool {
	b.rewounds++
	if b.again && b.mcu < len(b.data) && b.rewounds < maxRewound {
		b.at = b.mcu
		return true
	}
	b.ended = !b.again
	return false
}

func (b *bitReader) bit() int32 { return b.bitsOf(1) }

// bitsOf reads n bits, at most 16.
func (b *bitReader) bitsOf(n int) int32 {
	if b.n < n {
		b.fill(n)
	}
	b.n -= n
	return int32(b.acc>>b.n) & (1<<n - 1)
}

// symbol reads the value of a code. One that is not in the table is 0.
func (b *bitReader) symbol(t *huffman) byte {
	if b.n < lookBits {
		b.fill(lookBits)
	}
	if e := t.look[b.acc>>(b.n-lookBits)&(1<<lookBits-1)]; e != 0 {
		b.n -= int(e >> 8)
		return byte(e)
	}
	code := b.bitsOf(lookBits + 1)
	if code <= t.maxCode[lookBits+1] {
		return t.values[code+t.first[lookBits+1]]
	}
	for n := lookBits + 2; n <= 16; n++ {
		code = code<<1 | b.bit()
		if code <= t.maxCode[n] {
			return t.values[code+t.first[n]]
		}
	}
	b.bit() // libjpeg finds at the seventeenth bit that there is no such code
	return 0
}

// extended reads a number of s bits, whose first one is 0 for the negative ones.
func (b *bitReader) extended(s int) int32 {
	if s == 0 {
		return 0
	}
	return extend(b.bitsOf(s), s)
}

// fillWhole reads ahead where neither the end of the data is near nor a marker. It is
// false if one may be.
func (b *bitReader) fillWhole() bool {
	if b.at+8 > len(b.data) {
		return false
	}
	word := binary.BigEndian.Uint64(b.data[b.at:])
	const ones = 0x0101010101010101
	if (^word-ones)&word&(ones<<7) != 0 { // some byte is FF
		return false
	}
	more := (64 - b.n) >> 3
	b.at += more
	b.acc = b.acc<<(8*more) | word>>(64-8*more)
	b.n += 8 * more
	return true
}
