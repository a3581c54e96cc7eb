package vec

import "github.com/trainerd/trainerd/internal/float16"

// Conversions of slices between float32 and the types of 16 bits, with the bits of those of
// single numbers in float16.

// FromHalves sets d to the halves x.
func FromHalves(d []float32, x []uint16) {
	x = x[:len(d)]
	for i := fromHalvesWide(d, x); i < len(d); i++ {
		d[i] = float16.FromHalf(x[i])
	}
}

// ToHalves rounds x to halves.
func ToHalves(d []uint16, x []float32) {
	x = x[:len(d)]
	for i := toHalvesWide(d, x); i < len(d); i++ {
		d[i] = float16.ToHalf(x[i])
	}
}

// RoundHalves sets d to x, rounded to halves.
func RoundHalves(d, x []float32) {
	x = x[:len(d)]
	for i := roundHalvesWide(d, x); i < len(d); i++ {
		d[i] = float16.FromHalf(float16.ToHalf(x[i]))
	}
}

// FromBfloat16s sets d to the bfloat16s x.
func FromBfloat16s(d []float32, x []uint16) {
	x = x[:len(d)]
	for i := fromBfloat16sWide(d, x); i < len(d); i++ {
		d[i] = float16.FromBfloat16(x[i])
	}
}

// ToBfloat16s rounds x to bfloat16s.
func ToBfloat16s(d []uint16, x []float32) {
	x = x[:len(d)]
	for i := toBfloat16sWide(d, x); i < len(d); i++ {
		d[i] = float16.ToBfloat16(x[i])
	}
}

// RoundBfloat16s sets d to x, rounded to bfloat16s.
func RoundBfloat16s(d, x []float32) {
	x = x[:len(d)]
	for i := roundBfloat16sWide(d, x); i < len(d); i++ {
		d[i] = float16.FromBfloat16(float16.ToBfloat16(x[i]))
	}
}
