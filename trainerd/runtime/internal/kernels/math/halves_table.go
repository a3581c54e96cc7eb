package math

import (
	"math"
	"sync"

	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/vec"
)

// stepTable has the result of a function for each number of a type of 16 bits. Looking it up
// takes a tenth of the time of functions whose steps round.
type stepTable struct {
	once    sync.Once
	results []float32
}

// fewLooks is the number of elements that are not worth a table.
const fewLooks = 1 << 12

// apply sets d, which may be x, to the results of f.
func (t *stepTable) apply(d, x []float32, half bool, f func(x float32) float32) {
	if len(d) < fewLooks {
		for i, v := range x[:len(d)] {
			d[i] = f(v)
		}
		return
	}
	t.look(d, x, half, f)
}

// look is apply with a table for any number of elements.
func (t *stepTable) look(d, x []float32, half bool, f func(x float32) float32) {
	t.once.Do(func() { t.fill(half, f) })
	var block [256]uint16
	for len(d) > 0 {
		short := block[:min(len(d), len(block))]
		if half {
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

func (t *stepTable) fill(half bool, f func(x float32) float32) {
	t.results = make([]float32, math.MaxUint16+1)
	for i := range t.results {
		if half {
			t.results[i] = f(float16.FromHalf(uint16(i)))
		} else {
			t.results[i] = f(float16.FromBfloat16(uint16(i)))
		}
	}
}
