package math

import (
	"math"
	"sync"

	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// stepTable has the result of a function for each number of a type of 16 bits. Looking it up
// takes a tenth of the time of functions whose steps round.
type stepTable struct {
	f       func(x float32, r round16) float32
	half    bool
	once    sync.Once
	results []float32
}

// newStepTables returns the tables of half and of bfloat16.
func newStepTables(f func(x float32, r round16) float32) map[bool]*stepTable {
	return map[bool]*stepTable{true: {f: f, half: true}, false: {f: f}}
}

// one returns the result for a number.
func (t *stepTable) one(x float32) float32 {
	if t.half {
		return t.f(x, exec.RoundingTo(exec.Half))
	}
	return t.f(x, exec.RoundingTo(exec.Bfloat16))
}

// fewLooks is the number of elements that are not worth a table.
const fewLooks = 1 << 12

// way returns the faster way to the results of so many elements.
func (t *stepTable) way(n int) func(d, x []float32) {
	if n < fewLooks {
		return t.compute
	}
	return t.look
}

// compute sets d, which may be x, to the results.
func (t *stepTable) compute(d, x []float32) {
	for i, v := range x[:len(d)] {
		d[i] = t.one(v)
	}
}

// look is compute by the table.
func (t *stepTable) look(d, x []float32) {
	t.once.Do(t.fill)
	var block [256]uint16
	for len(d) > 0 {
		short := block[:min(len(d), len(block))]
		if t.half {
			vec.ToHalves(short, x[:len(short)])
		} else {
			vec.ToBfloat16s(short, x[:len(short)])
		}
		for i, v := range short {
			d[i] = t.results[v]
		}
		d, x = d[len(short):], x[len(short):]
	}
}

func (t *stepTable) fill() {
	t.results = make([]float32, math.MaxUint16+1)
	for i := range t.results {
		if t.half {
			t.results[i] = t.one(float16.FromHalf(uint16(i)))
		} else {
			t.results[i] = t.one(float16.FromBfloat16(uint16(i)))
		}
	}
}
