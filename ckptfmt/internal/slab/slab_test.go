package slab_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// TestTexts keeps texts in one buffer, one of them larger than what is made at once.
func TestTexts(t *testing.T) {
	var texts slab.Texts
	var got, want []string
	b := make([]byte, 0, 100<<10)
	for i := range 10_000 {
		b = append(b[:0], strings.Repeat("x", i%50)...)
		if i == 5000 {
			b = append(b, make([]byte, 80<<10)...)
		}
		got, want = append(got, texts.Keep(b)), append(want, string(b))
	}
	if !slices.Equal(got, want) {
		t.Error("other texts than were kept")
	}
}

func TestCopy(t *testing.T) {
	var room []int64
	if slab.Copy(&room, nil) != nil {
		t.Error("nil has a copy")
	}
	if list := slab.Copy(&room, []int64{}); list == nil || len(list) != 0 {
		t.Errorf("the copy of an empty list is %v", list)
	}
	var got [][]int64
	for i := range 3000 {
		list := []int64{int64(i), 1}
		if i == 7 {
			list = make([]int64, 5000)
		}
		got = append(got, slab.Copy(&room, list))
		list[0] = -1
	}
	for i, list := range got {
		if i != 7 && !slices.Equal(list, []int64{int64(i), 1}) || cap(list) != len(list) {
			t.Fatalf("list %d is %v", i, list)
		}
	}
}
