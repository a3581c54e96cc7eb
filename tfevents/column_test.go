package tfevents

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestColumn holds a column against a slice, through all that can happen to it.
func TestColumn(t *testing.T) {
	extremes := []int64{0, 1, -1, manySteps, math.MaxInt64, math.MinInt64, 1 << 40}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var c column
		var want []cell
		for range random.IntN(600) {
			p := cell{step: random.Int64N(100), wall: randomWall(random), form: byte(random.IntN(3)) << 6, file: len(want) / 50}
			if random.IntN(20) == 0 {
				p.step = extremes[random.IntN(len(extremes))]
			} else if random.IntN(5) == 0 {
				p.step = c.tail.step + []int64{-1, 0, manySteps - 1, manySteps, manySteps + 1}[random.IntN(5)]
			}
			if p.form != formOther {
				p.number = random.Uint32()
			}
			if p.form != formSimple {
				p.file, p.offset, p.index, p.size = random.IntN(300), random.Int64(), random.IntN(3), random.IntN(1<<30)
			}
			c.add(&p)
			if want = append(want, p); len(want) < 4 {
				checkColumn(t, &c, want)
			}
			if random.IntN(100) == 0 {
				c.pack()
			}
			if random.IntN(100) == 0 {
				n, step := random.IntN(len(want)+1), random.Int64N(100)
				before := len(want)
				var others writers
				if random.IntN(2) == 0 {
					others = writers{some: true, alive: make([]bool, 201), files: make([]lifetime, 201)}
					others.alive[2], others.alive[200] = true, random.IntN(2) == 0
				}
				old := slices.DeleteFunc(slices.Clone(want[:n]), func(p cell) bool { return p.step >= step && !others.spare(p.file, nil) })
				want = append(old, want[n:]...)
				if dropped := c.drop(n, step, others); dropped != before-len(want) {
					t.Fatalf("seed %d: dropped %d, want %d", seed, dropped, before-len(want))
				}
			}
		}
		checkColumn(t, &c, want)
	}
}

func TestColumnCut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var c column
	var want []cell
	step := int64(-1000)
	for range 8_000 {
		step += 1 + random.Int64N(3)
		if random.IntN(300) == 0 {
			step -= random.Int64N(1000)
		} else if random.IntN(20) == 0 {
			step -= random.Int64N(6)
		}
		kept := len(want)
		for kept > 0 && want[kept-1].step >= step {
			kept--
		}
		if dropped := c.cut(step); dropped != len(want)-kept {
			t.Fatalf("cut %d, want %d", dropped, len(want)-kept)
		}
		if len(want) > 0 && (len(want) < 300 || random.IntN(100) == 0) {
			checkColumn(t, &c, want[:kept])
		}
		p := cell{step: step, wall: randomWall(random), form: formSimple, number: 7, file: int(step / 500)}
		if random.IntN(3) == 0 {
			p.form, p.size = formNumber, random.IntN(100)
		}
		c.add(&p)
		want = append(want[:kept], p)
	}
	checkColumn(t, &c, want)
	if dropped := c.cut(math.MinInt64); dropped != len(want) {
		t.Errorf("cut %d of %d points", dropped, len(want))
	}
	checkColumn(t, &c, nil)
}

// randomWall returns the bits of a time, which some points do not have.
func randomWall(random *rand.Rand) uint64 {
	if random.IntN(20) == 0 {
		return math.Float64bits(math.NaN())
	}
	return random.Uint64()
}

func checkColumn(t *testing.T, c *column, want []cell) {
	t.Helper()
	i := 0
	c.each(func(p *cell) bool {
		got := *p
		if got.form == formOther {
			got.number = 0
		}
		if i >= len(want) {
			t.Fatalf("point %d: %+v, want none", i, got)
		}
		w := want[i]
		if got.form == formSimple { // which holds no place
			got.file, got.offset, got.index, got.size = 0, 0, 0, 0
			w.file, w.size = 0, 0
		}
		if got != w {
			t.Fatalf("point %d: %+v, want %+v", i, got, w)
		}
		i++
		return true
	})
	if i != len(want) || c.n != len(want) {
		t.Fatalf("%d points, says %d, want %d", i, c.n, len(want))
	}
	checkSums(t, c, want)
}

// checkSums holds what sums up a column against its points.
func checkSums(t *testing.T, c *column, want []cell) {
	t.Helper()
	var sums column
	for i, p := range want {
		wall := p.wallTime()
		if i == 0 || p.step > sums.maxStep {
			sums.maxStep = p.step
		}
		if i == 0 || math.IsNaN(sums.maxWall) || wall > sums.maxWall {
			sums.maxWall = wall
		}
		if p.form != formSimple {
			sums.sized++
			sums.sizeTotal += int64(p.size)
		}
	}
	for _, b := range c.blocks {
		sums.bytes += blockMemory + cap(b.data)
	}
	sameWall := c.maxWall == sums.maxWall || math.IsNaN(c.maxWall) && math.IsNaN(sums.maxWall)
	if c.maxStep != sums.maxStep || !sameWall || c.sized != sums.sized || c.sizeTotal != sums.sizeTotal || c.bytes != sums.bytes {
		t.Fatalf("largest step %d, latest time %v, %d sizes of %d bytes, %d bytes of memory; want %d, %v, %d, %d, %d",
			c.maxStep, c.maxWall, c.sized, c.sizeTotal, c.bytes, sums.maxStep, sums.maxWall, sums.sized, sums.sizeTotal, sums.bytes)
	}
	for i := 1; i < len(c.parts); i++ {
		if c.parts[i].file == c.parts[i-1].file {
			t.Fatalf("neighbouring parts of one file: %+v", c.parts)
		}
	}
	n := 0
	c.eachOfFile(func(i int, p *cell) bool {
		if i != n || p.file != want[i].file {
			t.Fatalf("point %d is of file %d, want point %d of file %d", i, p.file, n, want[n].file)
		}
		n++
		return true
	})
}

// TestColumnInOrder holds the order of several writers' points against a sort of all of them.
func TestColumnInOrder(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 6))
		c := column{mixed: true}
		type timed struct {
			cell
			until float64
		}
		var want []timed
		for file := range 2 + random.IntN(5) {
			wall, until := 10*random.Float64(), math.Inf(-1)
			for range random.IntN(600) {
				wall += random.Float64() - 0.1
				p := cell{step: random.Int64N(50), wall: math.Float64bits(wall), form: formSimple, number: random.Uint32(), file: file}
				if random.IntN(3) == 0 {
					p.form, p.offset, p.size = formNumber, random.Int64N(1000), 7
				}
				c.add(&p)
				until = max(until, wall)
				want = append(want, timed{p, until})
			}
		}
		slices.SortStableFunc(want, func(a, b timed) int { return cmp.Compare(a.until, b.until) })
		i := 0
		c.inOrder(func(p *cell) bool {
			if w := want[i]; p.step != w.step || p.wall != w.wall || p.number != w.number || p.file != w.file {
				t.Fatalf("seed %d: point %d is %+v, want %+v", seed, i, *p, w)
			}
			i++
			return true
		})
		if i != len(want) {
			t.Fatalf("seed %d: %d points, want %d", seed, i, len(want))
		}
		if i == 0 {
			continue
		}
		if first, last := c.ends(); first.number != want[0].number || last.number != want[i-1].number {
			t.Errorf("seed %d: it ends with %+v and %+v", seed, first, last)
		}
	}
}
