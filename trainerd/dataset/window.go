package dataset

import (
	"encoding/binary"
	"math/bits"
)

// Tags of the keys of a stream's random numbers; see the package's
// documentation.
const (
	shiftTag  = "trainerd/shift\x00\x00"
	windowTag = "windows\x00" // followed by the window's number, 64 bits, little-endian
)

// windowed gives the training examples of a stream: of each epoch one window
// of consecutive examples after the other, each mixed in itself. It holds one
// window in memory.
type windowed struct {
	source  *source
	skip    bitset // rows that are not for training
	n       int    // rows that are
	columns []affine
	weights []float32 // of the source's rows; nil for none
	opts    Options

	loaded     bool
	epoch      uint64
	start, end int // positions of the window, in the order of the files
	next       int // the row after the window
	held       buffer
	order      []uint32
	row        []float32
}

func (w *windowed) example(b *buffer, epoch uint64, position int) error {
	if !w.loaded || w.epoch != epoch || position < w.start || position >= w.end {
		if err := w.load(epoch, position); err != nil {
			w.loaded = false
			return err
		}
	}
	i := int(w.order[position-w.start])
	wide, label := w.source.width*w.opts.featureSize(), w.opts.labelSize()
	b.x, b.y = append(b.x, w.held.x[i*wide:(i+1)*wide]...), append(b.y, w.held.y[i*label:(i+1)*label]...)
	if w.weights != nil {
		b.w = append(b.w, w.held.w[i*weightSize:(i+1)*weightSize]...)
	}
	return nil
}

// load reads the window that has a position. The windows of an epoch begin at
// another place than those of the next, so that examples that are neighbours
// at a border now are not always.
func (w *windowed) load(epoch uint64, position int) error {
	size, shift := w.opts.ShuffleBuffer, 0
	if w.opts.Shuffle {
		high, _ := bits.Mul64(random(w.opts.Seed, epoch, shiftTag).Uint64(), uint64(min(size, w.n)))
		shift = int(high)
	}
	number := (position + shift) / size
	start := max(0, number*size-shift)
	end := min(w.n, start+size-max(0, shift-number*size))
	row := w.next
	if !w.loaded || start != w.end {
		row = w.find(start)
	}
	w.loaded = false
	w.held = buffer{w.held.x[:0], w.held.y[:0], w.held.w[:0]}
	for range end - start {
		for w.skip.has(row) {
			row++
		}
		if err := w.read(row); err != nil {
			return err
		}
		row++
	}
	w.order = append(w.order[:0], make([]uint32, end-start)...)
	for i := range w.order {
		w.order[i] = uint32(i)
	}
	if w.opts.Shuffle {
		mix(w.order, random(w.opts.Seed, epoch, string(binary.LittleEndian.AppendUint64([]byte(windowTag), uint64(number)))))
	}
	w.loaded, w.epoch, w.start, w.end, w.next = true, epoch, start, end, row
	return nil
}

func (w *windowed) read(row int) (err error) {
	w.row, err = w.source.example(&w.held, row, w.row, w.columns, w.opts)
	if w.weights != nil {
		w.held.w = appendFloat(w.held.w, w.weights[row])
	}
	return err
}

// find returns the row of the training example at a position of the files.
func (w *windowed) find(position int) int {
	row := 0
	for position > 0 || w.skip.has(row) {
		if !w.skip.has(row) {
			position--
		}
		row++
	}
	return row
}
