package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
)

// source is the examples of a file or folder, as they are there.
type source struct {
	rows
	name       string
	width      int
	image      []int
	classes    int
	columns    []string
	classNames []string
	schema     *Schema                       // nil for that of numbers
	unlabelled int                           // rows that were left out
	weights    []float32                     // of the rows; nil for none
	groups     *grouping                     // of the rows; nil for none
	records    []string                      // the features of tf.Example messages
	place      func(row, feature int) *Error // says where a feature is
	reopen     func() *source                // the same examples for another reader; nil when they are in memory
	close      func() error
}

// rows gives examples by number.
type rows interface {
	count() int
	// features appends the features of example i, unscaled.
	features(x []float32, i int) ([]float32, error)
	// label returns the label of example i: a class, or for numbers their bits.
	label(i int) (int64, error)
}

// labels are those of examples in memory.
type labels []int64

func (l labels) label(i int) (int64, error) { return l[i], nil }

// floatRows are examples in memory, one after the other.
type floatRows struct {
	values []float32
	width  int
	labels
}

func (r *floatRows) count() int { return len(r.labels) }
func (r *floatRows) features(x []float32, i int) ([]float32, error) {
	return append(x, r.values[i*r.width:(i+1)*r.width]...), nil
}

// byteRows are examples of 8-bit features in memory.
type byteRows struct {
	values []byte
	width  int
	labels
}

func (r *byteRows) count() int { return len(r.labels) }
func (r *byteRows) features(x []float32, i int) ([]float32, error) {
	for _, v := range r.values[i*r.width : (i+1)*r.width] {
		x = append(x, float32(v))
	}
	return x, nil
}

// noClose is for sources that have nothing open.
func noClose() error { return nil }

// store is a part of the examples, scaled.
type store interface {
	// append appends example i of the part.
	append(b *buffer, i int) error
}

// packed is a part as tensors have it.
type packed struct {
	buffer
	wide, label int // bytes of an example
	size        int // bytes of a feature
}

func (p *packed) append(b *buffer, i int) error {
	b.x = append(b.x, p.x[i*p.wide:(i+1)*p.wide]...)
	b.y = append(b.y, p.y[i*p.label:(i+1)*p.label]...)
	if len(p.w) > 0 {
		b.w = append(b.w, p.w[i*weightSize:(i+1)*weightSize]...)
	}
	return nil
}

// weightSize is that of a float32.
const weightSize = 4

// each calls f with the features and the label of each example.
func (p *packed) each(f func(x []float32, label int64)) error {
	x := make([]float32, p.wide/p.size)
	for i := range len(p.y) / p.label {
		for k := range x {
			x[k] = p.feature(p.x[i*p.wide+k*p.size:])
		}
		y := p.y[i*p.label:]
		if p.label == 4 {
			f(x, int64(binary.LittleEndian.Uint32(y)))
		} else {
			f(x, int64(binary.LittleEndian.Uint64(y)))
		}
	}
	return nil
}

func (p *packed) feature(b []byte) float32 {
	if p.size == 8 {
		return float32(int64(binary.LittleEndian.Uint64(b)))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// scaled is a part whose examples are scaled when they are asked for.
type scaled struct {
	source  *source
	order   []uint32
	columns []affine
	weights []float32 // of the source's rows; nil for none
	opts    Options
	row     []float32
}

func (s *scaled) append(b *buffer, i int) (err error) {
	row := int(s.order[i])
	s.row, err = s.source.example(b, row, s.row, s.columns, s.opts)
	if s.weights != nil {
		b.w = appendFloat(b.w, s.weights[row])
	}
	return err
}

// example appends a row, scaled. It returns its raw features, in the memory of
// room.
func (s *source) example(b *buffer, row int, room []float32, columns []affine, o Options) (raw []float32, err error) {
	if raw, err = s.features(room[:0], row); err != nil {
		return raw, err
	}
	label, err := s.label(row)
	if err != nil {
		return raw, err
	}
	b.x, err = appendFeatures(b.x, s, row, raw, columns, o)
	b.y = appendLabel(b.y, label, o)
	return raw, err
}

func appendFloat(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}

// take returns the given rows as a part. Numbers in memory are scaled now;
// what takes less room as it is, is scaled when it is used.
func (s *source) take(order []uint32, training bool, columns []affine, o Options) (store, error) {
	weights, err := s.weigh(order, training, o)
	if err != nil {
		return nil, err
	}
	lazy := &scaled{source: s, order: append([]uint32(nil), order...), columns: columns, weights: weights, opts: o}
	if _, ok := s.rows.(*floatRows); !ok {
		return lazy, nil
	}
	p := &packed{wide: s.width * o.featureSize(), label: o.labelSize(), size: o.featureSize()}
	p.x, p.y = make([]byte, 0, len(order)*p.wide), make([]byte, 0, len(order)*p.label)
	for i := range order {
		if err := lazy.append(&p.buffer, i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (o Options) featureSize() int {
	if o.IDs {
		return 8
	}
	return 4
}

func (o Options) labelSize() int {
	if o.Numbers {
		return 4
	}
	return 8
}

// appendFeatures appends the features of an example as a tensor has them.
func appendFeatures(x []byte, s *source, row int, features []float32, columns []affine, o Options) ([]byte, error) {
	if o.IDs {
		for _, v := range features {
			x = binary.LittleEndian.AppendUint64(x, uint64(int64(v)))
		}
		return x, nil
	}
	for i, v := range features {
		w := columns[i].apply(v)
		if math.IsInf(float64(w), 0) || math.IsNaN(float64(w)) && !math.IsNaN(float64(v)) {
			e := s.place(row, i)
			e.Reason, e.Hint = fmt.Sprintf("scaling makes %v infinite", v), "check data.scale"
			return x, e
		}
		x = appendFloat(x, w)
	}
	return x, nil
}

// schemaOrNumbers returns what the reader knows of the columns, or that they are
// numbers.
func (s *source) schemaOrNumbers(o Options) Schema {
	if s.schema != nil {
		return *s.schema
	}
	kind := KindNumber
	if o.IDs {
		kind = KindID
	}
	all := Schema{Format: o.Format, Image: s.image, Classes: s.classes, Features: make([]Feature, s.width)}
	for i := range all.Features {
		all.Features[i] = Feature{Kind: kind, Column: i}
		if i < len(s.columns) {
			all.Features[i].Name = s.columns[i]
		}
	}
	if o.Format == FormatTFRecord {
		all.Records = o.Features
		if o.Weight != "" {
			all.Records = s.records // or the weight would be taken for a feature
		}
	}
	all.Label = Feature{Name: o.Label.Name, Kind: KindNumber, Column: s.width}
	if !o.Numbers {
		all.Label.Kind, all.Label.Vocabulary = KindCategory, s.classNames
	}
	return all
}

func appendLabel(y []byte, label int64, o Options) []byte {
	if o.Numbers {
		return binary.LittleEndian.AppendUint32(y, uint32(label))
	}
	return binary.LittleEndian.AppendUint64(y, uint64(label))
}

// ordered gives the training examples in the order of each epoch.
type ordered interface {
	example(b *buffer, epoch uint64, position int) error
}

// shuffled is a part that each epoch reads in another order.
type shuffled struct {
	store   store
	order   []uint32
	shuffle bool
	seed    uint64
	epoch   uint64
	ordered bool
}

func (s *shuffled) example(b *buffer, epoch uint64, position int) error {
	if !s.ordered || s.epoch != epoch && s.shuffle {
		arrange(s.order, s.shuffle, s.seed, epoch)
		s.epoch, s.ordered = epoch, true
	}
	return s.store.append(b, int(s.order[position]))
}
