package float16

import (
	"math"
	"testing"
)

// TestHalf compares each half with what IEEE 754 says of its bits, and rounds the numbers in the
// middle between two of them.
func TestHalf(t *testing.T) {
	for bits := range 1 << 16 {
		v, exponent, fraction := FromHalf(uint16(bits)), bits>>10&31, bits&0x3ff
		want := math.Ldexp(float64(1<<10+fraction), exponent-25)
		switch {
		case exponent == 31 && fraction != 0:
			if v == v || ToHalf(v)&0x7fff != 0x7e00 || ToHalf(v)>>15 != uint16(bits>>15) {
				t.Fatalf("%#x is %v, and that %#x", bits, v, ToHalf(v))
			}
			continue
		case exponent == 31:
			want = math.Inf(1)
		case exponent == 0:
			want = math.Ldexp(float64(fraction), -24)
		}
		if bits>>15 == 1 {
			want = math.Copysign(want, -1)
		}
		if math.Float64bits(float64(v)) != math.Float64bits(want) || ToHalf(v) != uint16(bits) {
			t.Fatalf("%#x is %v, and that %#x; want %v", bits, v, ToHalf(v), want)
		}
		next := bits + 1
		middle := (float64(v) + float64(FromHalf(uint16(next)))) / 2
		if exponent == 30 && fraction == 0x3ff {
			middle = math.Copysign(65520, want) // the next would be 65536
		}
		if even := uint16(next &^ 1); exponent != 31 && ToHalf(float32(middle)) != even {
			t.Fatalf("%v is %#x, want %#x", middle, ToHalf(float32(middle)), even)
		}
	}
}

// TestBfloat16 does the same with the upper halves of float32s.
func TestBfloat16(t *testing.T) {
	for bits := range 1 << 16 {
		v := FromBfloat16(uint16(bits))
		switch {
		case v != v:
			if ToBfloat16(v) != 0x7fc0 {
				t.Fatalf("%#x becomes %#x", bits, ToBfloat16(v))
			}
		case math.Float32bits(v) != uint32(bits)<<16 || ToBfloat16(v) != uint16(bits):
			t.Fatalf("%#x is %v, and that %#x", bits, v, ToBfloat16(v))
		case !math.IsInf(float64(v), 0):
			middle := math.Float32frombits(uint32(bits)<<16 | 1<<15)
			if even := uint16((bits + 1) &^ 1); ToBfloat16(middle) != even {
				t.Fatalf("%v is %#x, want %#x", middle, ToBfloat16(middle), even)
			}
		}
	}
}
