package array

import (
	"math"
	"slices"
	"unsafe"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// sortPlaces sorts places of a row, from the largest element down, equals in their order and
// NaN last. Numbers of 32 bits are sorted by keys, which have the place in the
// lower half: that is several times as fast as looking the elements up.
func sortPlaces[T exec.Number](row []T, at []int32, keys []uint64) {
	if !pack(keys, row, at) {
		slices.SortFunc(at, func(i, j int32) int {
			switch {
			case below(row[j], row[i]):
				return -1
			case below(row[i], row[j]):
				return 1
			}
			return int(i) - int(j)
		})
		return
	}
	slices.Sort(keys)
	for i, k := range keys {
		at[i] = int32(uint32(k))
	}
}

// pack makes the keys, if there are any for the type.
func pack[T exec.Number](keys []uint64, row []T, at []int32) bool {
	var zero T
	start := unsafe.Pointer(unsafe.SliceData(row))
	switch any(zero).(type) {
	case float32:
		values := unsafe.Slice((*float32)(start), len(row))
		for i, place := range at {
			keys[i] = uint64(falling(values[place]))<<32 | uint64(place)
		}
	case int32:
		values := unsafe.Slice((*int32)(start), len(row))
		for i, place := range at {
			keys[i] = uint64(^(uint32(values[place])^1<<31))<<32 | uint64(place)
		}
	default:
		return false
	}
	return true
}

// falling is a number that is the larger the smaller v is. Both zeros are one, and what is no
// number is below all.
func falling(v float32) uint32 {
	if v != v {
		return math.MaxUint32
	}
	bits := math.Float32bits(v + 0)
	if bits>>31 == 0 {
		return ^(bits | 1<<31)
	}
	return bits
}
