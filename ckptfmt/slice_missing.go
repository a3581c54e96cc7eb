package ckptfmt

import (
	"fmt"
	"slices"
)

// maxMissing bounds the boxes, and the holes between them, that are examined to find what a tensor
// lacks: it is only for a message.
const maxMissing = 1000

// missingText names the first part of whole that boxes lack; they do not overlap and do not cover
// whole.
func missingText(boxes []box, whole box) string {
	holes := []box{whole}
	for _, b := range boxes {
		var left []box
		for _, h := range holes {
			left = append(left, h.without(b)...)
		}
		holes = left
		if len(boxes) > maxMissing || len(holes) > maxMissing {
			return ""
		}
	}
	first := slices.MinFunc(holes, func(a, b box) int { return slices.Compare(a.start, b.start) })
	text := fmt.Sprintf("; missing: %s", TensorSlice{Start: first.start, Length: first.length})
	if len(holes) > 1 {
		text += " and more"
	}
	return text
}

// without returns what is left of a when b is cut out of it, as boxes.
func (a box) without(b box) []box {
	common, ok := a.intersect(b)
	if !ok {
		return []box{a}
	}
	var left []box
	for i := range a.start {
		end, commonEnd := a.start[i]+a.length[i], common.start[i]+common.length[i]
		if common.start[i] > a.start[i] {
			left = append(left, a.along(i, a.start[i], common.start[i]))
		}
		if commonEnd < end {
			left = append(left, a.along(i, commonEnd, end))
		}
		a = a.along(i, common.start[i], commonEnd)
	}
	return left
}

// along returns the part of a from start to end in dimension i.
func (a box) along(i int, start, end int64) box {
	c := box{slices.Clone(a.start), slices.Clone(a.length)}
	c.start[i], c.length[i] = start, end-start
	return c
}
