package radix_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/radix"
)

type numbered struct {
	key uint64
	n   int
}

func TestSort(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 255, 256, 5000} {
		for _, mask := range []uint64{0, 7, 0xfff, 0xff000000_00000ff0, 1<<64 - 1} {
			list := make([]numbered, n)
			for i := range list {
				list[i] = numbered{random.Uint64() & mask, i}
			}
			want := slices.Clone(list)
			slices.SortStableFunc(want, func(a, b numbered) int { return cmp.Compare(a.key, b.key) })
			radix.Sort(list, func(x *numbered) uint64 { return x.key })
			if !slices.Equal(list, want) {
				t.Errorf("%d keys of bits %#x are out of order", n, mask)
			}
		}
	}
}
