package vec

// FromBytes sets d to the bytes x.
func FromBytes(d []float32, x []uint8) {
	x = x[:len(d)]
	for i := fromBytesWide(d, x); i < len(d); i++ {
		d[i] = float32(x[i])
	}
}

// FromInt32s sets d to the integers x, rounded to nearest, ties to even.
func FromInt32s(d []float32, x []int32) {
	x = x[:len(d)]
	for i := fromInt32sWide(d, x); i < len(d); i++ {
		d[i] = float32(x[i])
	}
}
