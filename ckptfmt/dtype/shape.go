package dtype

import (
	"fmt"
	"math"
)

// NumElements returns the product of a shape's dimensions. It fails if a
// dimension is negative or the product overflows.
func NumElements(shape []int64) (int64, error) {
	n := int64(1)
	empty := false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		if d == 0 {
			empty = true
			continue
		}
		if n > math.MaxInt64/d {
			return 0, fmt.Errorf("shape %v has more elements than an int64 can count", shape)
		}
		n *= d
	}
	if empty {
		return 0, nil
	}
	return n, nil
}
