package vec

// poolChannels is how many channels of a window are compared at once.
const poolChannels = 128

// ToLargest is the gradient of maximum pooling. It adds each element of pooled to
// the element of grads whose element of images is the first of the largest under its
// window; one that is NaN is not larger than another. The pixels of a window are
// rows of so many channels, at starts in the first of count windows, and step
// elements further in each after it. The caller has checked that all pixels exist.
func ToLargest[T Float](grads, pooled, images []T, starts []int, channels, step, count int) {
	if channels == 0 || count == 0 || toLargestWide(grads, pooled, images, starts, channels, step, count) {
		return
	}
	var best, place [poolChannels]T
	for w := range count {
		for c := 0; c < channels; c += poolChannels {
			n := min(poolChannels, channels-c)
			best, place := best[:n], place[:n]
			at := w*step + c
			copy(best, images[at+starts[0]:])
			clear(place)
			for k, start := range starts[1:] {
				Larger(best, place, images[at+start:], T(k+1))
			}
			for k, start := range starts {
				AddEqual(grads[at+start:][:n], pooled[w*channels+c:], place, T(k))
			}
		}
	}
}
