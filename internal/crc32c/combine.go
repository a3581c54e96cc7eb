package crc32c

// polynomial is Castagnoli's without the leading power, bits reversed: the
// lowest bit is the coefficient of x^31.
const polynomial = 0x82f63b78

// Combine returns the CRC-32C of two pieces, one after the other, given that
// of each and the length of the second. So pieces may be summed in parallel.
func Combine(first, second uint32, secondLen int64) uint32 {
	return NewCombiner(secondLen).Combine(first, second)
}

// A Combiner combines checksums where the second piece always has the same
// length.
type Combiner struct {
	shift uint32 // x^(8*length) modulo the polynomial
}

// NewCombiner returns the Combiner for a second piece of n bytes.
func NewCombiner(n int64) Combiner {
	// Square and multiply: x^(8n), starting from 1, which is the highest bit.
	result, power := uint32(1)<<31, uint32(1)<<30
	for range 3 {
		power = multiply(power, power) // x, x^2, x^4, x^8
	}
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = multiply(result, power)
		}
		power = multiply(power, power)
	}
	return Combiner{result}
}

// Combine returns the checksum of both pieces.
func (c Combiner) Combine(first, second uint32) uint32 {
	// What goes in front multiplies by a power of x for each bit after it.
	// The inversions before and after a checksum cancel out.
	return multiply(first, c.shift) ^ second
}

// multiply multiplies two polynomials modulo the polynomial.
func multiply(a, b uint32) uint32 {
	product := uint32(0)
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= polynomial
		}
	}
	return product
}
