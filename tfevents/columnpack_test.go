package tfevents

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestColumnCoarsen thins columns of all kinds out: what is left is a part of what
// was there, with the ends, the extremes of each group, and one that is NaN.
func TestColumnCoarsen(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var c column
		var all []cell
		for i := range 1 + random.IntN(900) {
			p := cell{step: int64(i), wall: math.Float64bits(float64(i)), file: i / 100, number: math.Float32bits(float32(random.NormFloat64()))}
			switch random.IntN(20) {
			case 0:
				p.number = math.Float32bits(float32(math.NaN()))
			case 1:
				p.form, p.number, p.offset = formOther, 0, int64(i)
			}
			c.add(&p)
			all = append(all, p)
		}
		front, frontSize, tailSize, old := random.IntN(len(all)+1), 2<<random.IntN(3), 2<<random.IntN(6), random.IntN(len(all)+1)
		oldLeft := c.coarsen(front, frontSize, tailSize, old)
		var left []cell
		c.eachOfFile(func(_ int, p *cell) bool {
			if p.form == formOther {
				p.number = 0
			} else {
				p.offset = 0
			}
			left = append(left, *p)
			return true
		})
		checkCoarse(t, all, left, front, frontSize, tailSize)
		before := func(p cell) bool { return p.step < int64(old) }
		if want := len(slices.DeleteFunc(slices.Clone(left), func(p cell) bool { return !before(p) })); oldLeft != want {
			t.Errorf("seed %d: %d old points are left, want %d", seed, oldLeft, want)
		}
		if most := front*2/frontSize + (len(all)-front)*2/tailSize + groupEnds; c.n != len(left) || c.n > most {
			t.Errorf("seed %d: %d points of %d are left, %d says the column; want at most %d", seed, len(left), len(all), c.n, most)
		}
		if c.maxStep != all[len(all)-1].step {
			t.Errorf("seed %d: the largest step is %d, want %d", seed, c.maxStep, all[len(all)-1].step)
		}
	}
}

// checkCoarse looks for what must not be lost of each stretch of the points.
func checkCoarse(t *testing.T, all, left []cell, front, frontSize, tailSize int) {
	t.Helper()
	byStep := make(map[int64]bool)
	for i, p := range left {
		if p != all[p.step] {
			t.Fatalf("point %+v was %+v", p, all[p.step])
		}
		if i > 0 && p.step <= left[i-1].step {
			t.Fatalf("step %d follows %d", p.step, left[i-1].step)
		}
		byStep[p.step] = true
	}
	if !byStep[0] || !byStep[int64(len(all)-1)] {
		t.Fatal("an end is lost")
	}
	for _, part := range []struct{ from, to, size int }{{0, front, frontSize}, {front, len(all), tailSize}} {
		if part.to == part.from {
			continue
		}
		numbers := slices.DeleteFunc(slices.Clone(all[part.from:part.to]), func(p cell) bool { return p.form == formOther || p.float() != p.float() })
		if len(numbers) == 0 {
			continue
		}
		high := slices.MaxFunc(numbers, func(a, b cell) int { return int(math.Copysign(1, float64(a.float()-b.float()))) })
		if !byStep[high.step] {
			t.Errorf("the highest point of %d to %d, at %d, is lost", part.from, part.to, high.step)
		}
		if part.size == 2 && slices.ContainsFunc(all[part.from:part.to], func(p cell) bool { return !byStep[p.step] }) {
			t.Errorf("a point of %d to %d is lost, where none must be", part.from, part.to)
		}
	}
}

// TestColumnPack: the small blocks become one, the last one has no room left, and the points
// are what they were, also those that come after it.
func TestColumnPack(t *testing.T) {
	new(column).pack()
	for _, n := range []int{1, 5, 300, 5000} {
		var c, want column
		point := func(i int) *cell {
			return &cell{step: int64(i), wall: uint64(i), number: uint32(i), form: formNumber, offset: int64(100 * i), size: 30}
		}
		for i := range n {
			c.add(point(i))
			want.add(point(i))
		}
		before := len(c.blocks)
		c.pack()
		if before > 1 && len(c.blocks) >= before || n <= 300 && len(c.blocks) != 1 {
			t.Errorf("%d points: %d blocks, before %d", n, len(c.blocks), before)
		}
		points, bytes := 0, 0
		for i, b := range c.blocks {
			points, bytes = points+b.n, bytes+blockMemory+cap(b.data)
			if wasted := cap(b.data) - len(b.data); i == 0 && wasted > 0 || i == len(c.blocks)-1 && wasted > len(b.data)/wastedShare {
				t.Errorf("%d points: block %d has %d bytes, %d unused", n, i, len(b.data), wasted)
			}
		}
		if points != n || c.bytes != bytes {
			t.Errorf("%d points: %d in the blocks; %d bytes, counted %d", n, points, bytes, c.bytes)
		}
		for i := range 100 {
			c.add(point(n + i))
			want.add(point(n + i))
		}
		var got, all []cell
		c.each(func(p *cell) bool { got = append(got, *p); return true })
		want.each(func(p *cell) bool { all = append(all, *p); return true })
		if !slices.Equal(got, all) {
			t.Errorf("%d points: they are others afterwards", n)
		}
	}
}

// TestCoarsenKeeps has the points of one group between the first and the last, and those that stay.
func TestCoarsenKeeps(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		numbers []float64 // infinite: a value of another kind
		want    []int64
	}{
		{[]float64{0, 1, 9, -9, 2, 0}, []int64{0, 2, 3, 5}},
		{[]float64{0, 1, nan, -9, 9, 0}, []int64{0, 2, 4, 5}},
		{[]float64{0, nan, 5, 0}, []int64{0, 1, 2, 3}},
		{[]float64{0, nan, nan, 0}, []int64{0, 2, 3}},
		{[]float64{-9, math.Inf(1), 1, 2, 0}, []int64{0, 2, 3, 4}},
		{[]float64{0, math.Inf(1), math.Inf(1), 0}, []int64{0, 1, 3}},
	} {
		var c column
		for i, v := range tc.numbers {
			p := cell{step: int64(i), number: math.Float32bits(float32(v))}
			if math.IsInf(v, 0) {
				p.form = formOther
			}
			c.add(&p)
		}
		c.maxStep = 77 // as of a point that goes
		c.coarsen(0, 2, 16, 0)
		var got []int64
		c.each(func(p *cell) bool { got = append(got, p.step); return true })
		if !slices.Equal(got, tc.want) || c.maxStep != 77 {
			t.Errorf("%v: %v stay, want %v; the largest step is %d", tc.numbers, got, tc.want, c.maxStep)
		}
	}
}
