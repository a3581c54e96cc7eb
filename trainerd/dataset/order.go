package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// splitEpoch keys the shuffle that comes before the split. No epoch has this
// number.
const splitEpoch = math.MaxUint64

// keyTag ends the key of every shuffle; see the package's documentation.
const keyTag = "trainerd/dataset"

// arrange fills order with 0..len(order)-1, shuffled when asked. What it gives
// must never change: it decides which rows a resumed training sees.
func arrange(order []uint32, shuffle bool, seed, epoch uint64) {
	for i := range order {
		order[i] = uint32(i)
	}
	if !shuffle {
		return
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], epoch)
	copy(key[16:], keyTag)
	source := rand.NewChaCha8(key)
	for i := len(order) - 1; i > 0; i-- {
		// The product's high half lies in [0, i]. Its bias, below 2^-32, is
		// far less than any training could tell.
		j, _ := bits.Mul64(source.Uint64(), uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
}

// testRows returns the size of the test part. At least one row trains.
func testRows(name string, rows int, o Options) (int, error) {
	if rows < 2 {
		return 0, &Error{File: name, Reason: "holds a single row", Hint: "training needs at least two"}
	}
	tests := o.TestRows
	if tests == 0 {
		tests = int(math.Round(o.TestFraction * float64(rows)))
	}
	if tests < 0 || tests >= rows {
		return 0, &Error{File: name, Reason: fmt.Sprintf("%d of the %d rows would be for testing and none for training", tests, rows),
			Hint: "lower data.test_rows or data.test_fraction"}
	}
	return tests, nil
}

// scale applies Options.Scale and Options.Normalize to all features of t, with
// the statistics of the training rows.
func scale(t *table, train []uint32, o Options) error {
	columns := make([]affine, t.width)
	for i := range columns {
		columns[i] = affine{divide: o.Scale}
	}
	switch o.Normalize {
	case NormalizeNone:
	case NormalizeStandard:
		standardise(t, train, columns)
	case NormalizeMinMax:
		minMax(t, train, columns)
	default:
		return &Error{File: t.name, Reason: fmt.Sprintf("the normalisation %q does not exist", o.Normalize), Hint: `use "standard", "minmax" or ""`}
	}
	for i, v := range t.features {
		scaled := columns[i%t.width].apply(v)
		if math.IsInf(float64(scaled), 0) || math.IsNaN(float64(scaled)) {
			return &Error{File: t.name, Column: t.column(i%t.width) + 1, Name: t.nameOf(t.column(i % t.width)),
				Reason: fmt.Sprintf("scaling makes %v infinite", v), Hint: "check data.scale"}
		}
		t.features[i] = scaled
	}
	return nil
}

// affine maps v to (v - subtract) / divide.
type affine struct{ subtract, divide float64 }

func (a affine) apply(v float32) float32 {
	return float32((float64(v) - a.subtract) / a.divide)
}

// standardise makes columns subtract the mean and divide by the standard
// deviation of the training rows.
func standardise(t *table, train []uint32, columns []affine) {
	n := float64(len(train))
	for c := range columns {
		sum := 0.0
		for _, row := range train {
			sum += float64(t.features[int(row)*t.width+c])
		}
		mean := sum / n
		squares := 0.0
		for _, row := range train {
			d := float64(t.features[int(row)*t.width+c]) - mean
			squares += d * d
		}
		columns[c] = affine{subtract: mean, divide: orOne(math.Sqrt(squares / n))}
	}
}

// minMax makes columns map the range of the training rows to [0, 1].
func minMax(t *table, train []uint32, columns []affine) {
	for c := range columns {
		low, high := math.Inf(1), math.Inf(-1)
		for _, row := range train {
			v := float64(t.features[int(row)*t.width+c])
			low, high = min(low, v), max(high, v)
		}
		columns[c] = affine{subtract: low, divide: orOne(high - low)}
	}
}

// orOne keeps a constant column from being divided by 0.
func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// take copies rows, in the given order, to the form that tensors have.
func (t *table) take(rows []uint32) part {
	p := part{x: make([]byte, 0, 4*len(rows)*t.width), y: make([]byte, 0, 8*len(rows))}
	for _, row := range rows {
		for _, v := range t.features[int(row)*t.width : (int(row)+1)*t.width] {
			p.x = binary.LittleEndian.AppendUint32(p.x, math.Float32bits(v))
		}
		p.y = binary.LittleEndian.AppendUint64(p.y, uint64(t.labels[row]))
	}
	return p
}
