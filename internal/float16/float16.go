// Package float16 converts single numbers between float32 and the two 16-bit types: half, as IEEE
// 754 defines it, and bfloat16, the upper half of a float32. Rounding is to nearest, ties to even;
// NaN stays NaN.
package float16

import "math"

// FromHalf returns a half as a float32.
func FromHalf(v uint16) float32 {
	sign := uint32(v&0x8000) << 16
	exponent, fraction := uint32(v>>10&31), uint32(v&0x3ff)
	switch exponent {
	case 0:
		f := math.Float32bits(float32(fraction) / (1 << 24))
		return math.Float32frombits(sign | f)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// ToHalf rounds a float32 to a half.
func ToHalf(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits >> 16 & 0x8000)
	switch a := math.Float32frombits(bits & 0x7fffffff); {
	case a != a:
		return sign | 0x7e00
	case a >= 65520:
		return sign | 0x7c00
	case a < 1.0/(1<<14):
		// Below the normal range the unit is 2^-24.
		return sign | uint16(math.RoundToEven(float64(a)*(1<<24)))
	default:
		b := math.Float32bits(a) - (127-15)<<23
		return sign | uint16((b+0xfff+b>>13&1)>>13)
	}
}

// FromBfloat16 returns a bfloat16 as a float32.
func FromBfloat16(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }

// ToBfloat16 rounds a float32 to a bfloat16. NaN loses its sign, as in the packets of
// TensorFlow.
func ToBfloat16(v float32) uint16 {
	if v != v {
		return 0x7fc0
	}
	bits := math.Float32bits(v)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
