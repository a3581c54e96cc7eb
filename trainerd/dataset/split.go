package dataset

import (
	"fmt"
	"math"
	"math/bits"
)

// divide splits the examples into a training and a test part, and scales them.
func (d *Dataset) divide(train, test *source) error {
	if d.opts.ShuffleBuffer > 0 && d.opts.Format == FormatTFRecord {
		return d.divideStream(train, test)
	}
	trainOrder, testOrder, err := d.splitRows(train, test != nil)
	if err != nil {
		return err
	}
	if train.groups != nil {
		d.trainGroups = train.groups.of(trainOrder)
	}
	inTest := make(bitset, (train.rows.count()+63)/64)
	for _, row := range testOrder {
		inTest.set(int(row))
	}
	d.eachTrain = func(f func([]float32, int64)) error {
		return each(train, func(i int) bool { return !inTest.has(i) }, f)
	}
	columns, err := scaling(d, train)
	if err != nil {
		return err
	}
	trainStore, err := train.take(trainOrder, true, columns, d.opts)
	if err != nil {
		return err
	}
	if d.test, err = train.take(testOrder, false, columns, d.opts); err != nil {
		return err
	}
	d.TrainRows, d.TestRows = len(trainOrder), len(testOrder)
	if p, ok := trainStore.(*packed); ok {
		d.eachTrain = p.each // so that nothing holds the examples a second time
	}
	d.train = &shuffled{store: trainStore, order: make([]uint32, len(trainOrder)), shuffle: d.opts.Shuffle, seed: d.opts.Seed}
	if test == nil {
		return nil
	}
	return d.useTest(test, columns)
}

// splitRows returns which rows are trained with and which tested with, in their order. With a
// test file, all are trained with.
func (d *Dataset) splitRows(train *source, hasTestFile bool) (trainOrder, testOrder []uint32, err error) {
	rows := train.rows.count()
	order := make([]uint32, rows)
	arrange(order, d.opts.Shuffle, d.opts.Seed, splitEpoch)
	if hasTestFile {
		return order, nil, nil
	}
	tests, err := testRows(train.name, rows, d.opts)
	if err != nil {
		return nil, nil, err
	}
	if train.groups == nil {
		return order[:rows-tests], order[rows-tests:], nil
	}
	trainOrder, testOrder, e := train.groups.split(order, tests)
	if e != nil {
		e.File, e.Name = train.name, d.opts.Group
		return nil, nil, e
	}
	return trainOrder, testOrder, nil
}

// useTest makes all examples of a file the test part.
func (d *Dataset) useTest(test *source, columns []affine) (err error) {
	d.close = append(d.close, test.close)
	all := make([]uint32, test.rows.count())
	arrange(all, false, 0, 0)
	d.TestRows = len(all)
	d.test, err = test.take(all, false, columns, d.opts)
	return err
}

// divideStream is divide for examples that are not in memory. What is needed
// for each of them is a bit.
func (d *Dataset) divideStream(train, test *source) error {
	rows, tests := train.rows.count(), 0
	if test == nil {
		var err error
		if tests, err = testRows(train.name, rows, d.opts); err != nil {
			return err
		}
	}
	inTest := pickTest(rows, tests, d.opts)
	d.eachTrain = func(f func([]float32, int64)) error {
		return each(train, func(i int) bool { return !inTest.has(i) }, f)
	}
	columns, err := scaling(d, train)
	if err != nil {
		return err
	}
	d.TrainRows, d.TestRows = rows-tests, tests
	weights, err := train.weigh(inTest.without(rows), true, d.opts)
	if err != nil {
		return err
	}
	d.train = &windowed{source: train, skip: inTest, n: rows - tests, columns: columns, weights: weights, opts: d.opts}
	if test != nil {
		return d.useTest(test, columns)
	}
	// The test part reads with a cursor of its own, so that an evaluation does
	// not take the training back to the beginning of the files.
	own := train.reopen()
	d.close = append(d.close, own.close)
	order := make([]uint32, 0, tests)
	for i := range rows {
		if inTest.has(i) {
			order = append(order, uint32(i))
		}
	}
	d.test, err = own.take(order, false, columns, d.opts)
	return err
}

// pickTest marks the test rows of a stream: with shuffling each row is as
// likely as any other, else they are the last.
func pickTest(rows, tests int, o Options) bitset {
	picked := make(bitset, (rows+63)/64)
	if !o.Shuffle {
		for i := rows - tests; i < rows; i++ {
			picked.set(i)
		}
		return picked
	}
	source := random(o.Seed, splitEpoch, keyTag)
	for i := range rows {
		if high, _ := bits.Mul64(source.Uint64(), uint64(rows-i)); high < uint64(tests) {
			picked.set(i)
			tests--
		}
	}
	return picked
}

// bitset is a set of row numbers.
type bitset []uint64

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }

// without returns the rows that are not in the set, of so many.
func (b bitset) without(rows int) (others []uint32) {
	for i := range rows {
		if !b.has(i) {
			others = append(others, uint32(i))
		}
	}
	return others
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
