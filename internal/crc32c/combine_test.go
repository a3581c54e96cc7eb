package crc32c

import "testing"

func TestCombine(t *testing.T) {
	data := make([]byte, 70000)
	for i := range data {
		data[i] = byte(i * 31 >> 3)
	}
	for _, total := range []int{0, 1, 2, 9, 1000, 65537, len(data)} {
		for _, split := range []int{0, 1, 3, 8, 999, 65536, total} {
			if split > total {
				continue
			}
			a, b := data[:split], data[split:total]
			if got, want := Combine(Value(a), Value(b), int64(len(b))), Value(data[:total]); got != want {
				t.Errorf("%d + %d bytes: %#08x, want %#08x", len(a), len(b), got, want)
			}
		}
	}
}

// Zeros are shifted over without being read, so lengths can be tested that no
// memory holds: n zeros behind a piece, as one piece or as two.
func TestCombineLong(t *testing.T) {
	crc, zero := Value([]byte("weights")), uint32(0)
	for _, n := range []int64{1 << 31, 1<<40 + 12345, 1<<62 - 1} {
		one := NewCombiner(n).Combine(crc, zero)
		two := Combine(Combine(crc, zero, n/3), zero, n-n/3)
		if one != two {
			t.Errorf("length %d: %#08x at once, %#08x in two steps", n, one, two)
		}
	}
}
