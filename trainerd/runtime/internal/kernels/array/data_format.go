package array

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Ops on the order of elements, and on that of the dimensions of images.
var dataFormatOps = exec.OpTable{
	"DataFormatDimMap":     {Types: exec.Indices, Build: buildFormatMap},
	"DataFormatVecPermute": {Types: exec.Indices, Build: buildFormatPermute},
}

// formats returns the places in the destination format of the dimensions of the
// source format.
func formats(b *exec.OpConstruction) []int {
	src, dst := b.String("src_format"), b.String("dst_format")
	if len(src) != len(dst) || len(src) < 4 || len(src) > 5 {
		b.Fail("src_format=%q, dst_format=%q", src, dst)
		return nil
	}
	var places []int
	for i := range len(src) {
		at := -1
		for j := range len(dst) {
			if dst[j] == src[i] {
				at = j
			}
		}
		if at < 0 {
			b.Fail("%q is not a permutation of %q", dst, src)
			return nil
		}
		places = append(places, at)
	}
	return places
}

// buildFormatMap builds the op that renames dimensions.
func buildFormatMap(b *exec.OpConstruction) (exec.Kernel, error) {
	places := formats(b)
	n := len(places)
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := c.OutLike(0, x.DType, x)
		for i := range x.NumElements() {
			exec.SetInt(d, i, places[wrapped(x.IntAt(i), n)])
		}
		return nil
	}, nil
}

// wrapped is the place of dimension k of n. There is one for any number, as in
// TensorFlow: the last for those less than -n that are not multiples of n.
func wrapped(k, n int) int {
	if k = (k + n) % n; k < 0 {
		return n - 1
	}
	return k
}

// buildFormatPermute builds the op that reorders what belongs to dimensions: a
// number or a pair for each, of all or of the spatial ones alone.
func buildFormatPermute(b *exec.OpConstruction) (exec.Kernel, error) {
	places := formats(b)
	var spatial []int
	for i, c := range b.String("src_format") {
		if c != 'N' && c != 'C' && i < len(places) {
			spatial = append(spatial, places[i])
		}
	}
	sorted := slices.Sorted(slices.Values(spatial))
	for i, v := range spatial {
		spatial[i], _ = slices.BinarySearch(sorted, v)
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		to := places
		if len(x.Shape) > 0 && x.Shape[0] == len(spatial) {
			to = spatial
		}
		if len(x.Shape) < 1 || len(x.Shape) > 2 || x.Shape[0] != len(to) || len(x.Shape) == 2 && x.Shape[1] != 2 {
			return c.Invalid("input must be a vector of size %d, or matrix with %d rows and 2 columns, not %s", len(places), len(places), x.Describe())
		}
		width := exec.NumElements(x.Shape[1:])
		d := c.OutLike(0, x.DType, x)
		for i, at := range to {
			exec.CopyElems(d, at*width, x, i*width, width)
		}
		return nil
	}, nil
}
