//go:build amd64 && !noasm

package vec

// toLargestWide is ToLargest for float32 with AVX2; else it returns false.
func toLargestWide[T Float](grads, pooled, images []T, starts []int, channels, step, count int) bool {
	if !assembly || !single[T]() {
		return false
	}
	last := (count-1)*step + channels - 1
	for _, start := range starts {
		_, _ = images[start:][last], grads[start:][last]
	}
	_ = pooled[count*channels-1]
	sToLargest(f32(grads), f32(images), f32(pooled), &starts[0], len(starts), channels, 4*step, count)
	return true
}
