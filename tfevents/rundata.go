package tfevents

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// RunData is an index of a run's events files: about ten bytes for each scalar and,
// for everything else, its position in the files, from which [RunData.Value] reads it.
// It is not safe for concurrent use with [RunData.Update]; all other methods only
// read.
type RunData struct {
	Name   string
	Series []*Series // in the order in which their tags were first seen
	Events int       // read, including those dropped
	Purged int       // points dropped
	// Thinned counts the points that a [MemoryLimit] left no room for.
	Thinned int
	Began   float64 // the earliest time of an event, +Inf without one that has a time
	// Stopped says that the last event is a SessionLog STOP: the training has ended. Few
	// programs write one.
	Stopped bool
	Damage  []error // *[tfrecord.CorruptError], and errors of files that cannot be read

	fsys  fs.FS
	files []indexedFile
	o     RunOptions
	all   []*Series // including those without a point

	rule  purger[*Series]
	scan  eventScan
	facts eventFacts
	last  int // in all: the one that a value was added to last

	memory  int // bytes that the series take
	counted int // of them, known to the limit
}

// simpleValueSize returns the encoded size of a simple_value with a tag.
func simpleValueSize(tag string) int64 {
	v := tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_SimpleValue{}}
	return int64(proto.Size(&v))
}

// ReadRun reads all files of a run once, from their beginnings to their ends; o may be nil. Damage
// is recorded, and reading continues as in the program that the purge mode imitates: after the
// damage with PurgeExact and KeepAll, with the next file otherwise. With PurgeExact, a beginning
// that a file shares with an earlier one, because either is a backup, counts once. The files are
// read again when a value is requested. [RunData.Update] adds what has been appended since.
func ReadRun(fsys fs.FS, run Run, o *RunOptions) *RunData {
	x := &RunData{Name: run.Name, fsys: fsys, Began: math.Inf(1)}
	if o != nil {
		x.o = *o
	}
	x.rule = purger[*Series]{mode: x.o.Purge, byTag: make(map[string]*Series)}
	x.Update(run.Files)
	x.pack()
	return x
}

// pack frees memory that the series do not need. A run that is updated would need it again soon.
func (x *RunData) pack() {
	for _, s := range x.all {
		s.points.pack()
	}
	x.recount()
}

// ReadRuns reads several runs at a time, one per processor. Its goroutines
// have ended when it returns.
func ReadRuns(fsys fs.FS, runs []Run, o *RunOptions) []*RunData {
	all := make([]*RunData, len(runs))
	parallel.Each(context.Background(), len(runs), func(i int) { all[i] = ReadRun(fsys, runs[i], o) })
	return all
}

// Lookup returns the series of a tag, or nil.
func (x *RunData) Lookup(tag string) *Series { return x.rule.byTag[tag] }

// addRecord adds the event in a record.
func (x *RunData) addRecord(data []byte, file int, at int64) error {
	if added, err := x.addScalar(data, file, at); added {
		return err
	}
	if x.scan.parse(data) {
		x.facts = eventFacts{step: x.scan.step, time: x.scan.wallTime, summary: true, values: true}
	} else {
		e, err := decodeEvent(x.files[file].name, at, data)
		if err != nil {
			return err
		}
		x.facts = x.scan.fill(e)
	}
	shown, err := x.noteEvent(file)
	if err != nil || !shown {
		return err
	}
	e := &x.scan
	if x.rule.purgeFor(&x.facts) {
		for i := range e.values {
			x.rule.purgeOwn(string(e.values[i].tag), e.step)
		}
	}
	c := cell{wall: math.Float64bits(e.wallTime), step: e.step, file: file, offset: at}
	for i := range e.values {
		c.index = i
		x.addValue(&e.values[i], &c)
	}
	return nil
}

// noteEvent records an event before its values are added, and reports whether they count.
func (x *RunData) noteEvent(file int) (shown bool, err error) {
	at := x.facts.time
	if x.o.Purge == PurgeDataServer && math.IsNaN(at) {
		return false, errNoTime(x.files[file].name)
	}
	x.Events++
	switch {
	case x.facts.stop:
		x.Stopped = true
	case x.facts.start || x.facts.values:
		x.Stopped = false
	}
	if at < x.Began && !math.IsInf(at, 0) {
		x.Began = at
	}
	// The data server skips an event at an infinite time.
	return x.o.Purge != PurgeDataServer || !math.IsInf(at, 0), nil
}

// addValue adds a value as the point c and sets the form of c.
func (x *RunData) addValue(v *valueScan, c *cell) {
	s := x.seriesOf(v)
	s.kind.note(v)
	if again := x.rule.purgeTag(s, c.step, v.number, v.form != formOther); again || !x.keeps(s, v) {
		return
	}
	if s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE {
		s.countBlobs(v, c.step)
	}
	c.form, c.number, c.size = v.form, v.number, v.size()
	if x.o.places && c.form == formSimple {
		c.form = formNumber
	}
	x.addPoint(s, c)
}

// addPoint appends a point to a series.
func (x *RunData) addPoint(s *Series, c *cell) {
	if s.newest != x.rule.session {
		s.newest, s.old = x.rule.session, s.points.n
	}
	before := s.points.bytes
	if s.points.add(c); s.points.bytes > before {
		x.grown(s.points.bytes - before)
	}
}

// keeps reports whether the value becomes a point of its series.
func (x *RunData) keeps(s *Series, v *valueScan) bool {
	scalars := s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_SCALAR
	switch {
	case v.form != formOther && scalars:
		return true // without a look at the rest of it
	case !scalars && x.o.thorough():
		return true
	}
	return x.rule.mode.keeps(s.Metadata, v.message())
}

// known returns the series of a tag, or nil. Most writers write their tags in the same
// order again and again.
func (x *RunData) known(tag []byte) *Series {
	if len(x.all) > 0 {
		next := x.all[x.last].follows
		if s := x.all[next]; s.Tag == string(tag) {
			x.last = next
			return s
		}
	}
	s := x.rule.byTag[string(tag)]
	if s != nil {
		x.all[x.last].follows = s.number
		x.last = s.number
	}
	return s
}

// seriesOf returns the series that the value belongs to.
func (x *RunData) seriesOf(v *valueScan) *Series {
	if s := x.known(v.tag); s != nil {
		if s.undescribed() && x.o.Purge != PurgeDataServer { // which asks the first value only
			x.describe(s, v)
		}
		return s
	}
	s := &Series{Tag: string(v.tag)}
	x.describe(s, v)
	s.number = len(x.all)
	x.rule.byTag[s.Tag] = s
	x.all = append(x.all, s)
	x.grown(s.memory())
	x.all[x.last].follows = s.number
	x.last = s.number
	return s
}

// describe gives a series the metadata that v says or implies. A value without metadata may come
// first if the one with them is damaged or overtaken: many writers put the metadata into the first
// value of each tag only.
func (x *RunData) describe(s *Series, v *valueScan) {
	if v.form == formSimple {
		s.Metadata, s.unnamed = decode.ScalarMetadata(s.Tag), true
	} else {
		first := v.outline()
		s.Metadata, s.unnamed = metadataOf(x.rule.mode, first), first.GetMetadata().GetDisplayName() == ""
	}
	s.at.ofRun = decode.DescribesRun(s.Plugin())
	s.kind.odd = s.kind.odd || s.Plugin() != summary.PluginScalars
}

// Value returns the value of a point as it was written. It reads the file,
// except for a scalar in the style of TensorFlow 1.
func (x *RunData) Value(p Point) (*tfpb.Summary_Value, error) {
	var open valueFile
	defer open.close()
	return x.value(&open, p)
}

func (x *RunData) value(open *valueFile, p Point) (*tfpb.Summary_Value, error) {
	if p.cell.form == formSimple {
		number := math.Float32frombits(p.cell.number)
		return &tfpb.Summary_Value{Tag: p.series.Tag, Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: number}}, nil
	}
	e, err := open.event(x, x.files[p.cell.file].name, p.cell.offset)
	if err != nil {
		return nil, err
	}
	values := valuesOf(e)
	if p.cell.index >= len(values) || values[p.cell.index].GetTag() != p.series.Tag {
		return nil, fmt.Errorf("%s: the event at offset %d is another one than when it was indexed: index the run again",
			x.files[p.cell.file].name, p.cell.offset)
	}
	return values[p.cell.index], nil
}

// Scalars walks the points of a series that are scalars. Values of types other than
// float32 are read from the files; those that cannot be read are left out.
func (x *RunData) Scalars(s *Series) iter.Seq2[Point, float64] {
	if s.AllFloat32() {
		return func(yield func(Point, float64) bool) {
			s.points.inOrder(func(c *cell) bool { return yield(s.point(c), float64(c.float())) })
		}
	}
	return func(yield func(Point, float64) bool) {
		next, stop := iter.Pull2(x.Values(s.unheld()))
		defer stop()
		for p := range s.Points() {
			number, ok := p.Scalar()
			if !ok {
				value, err, _ := next()
				if number, ok = decode.Scalar(value); err != nil || !ok {
					continue
				}
			}
			if !yield(p, number) {
				return
			}
		}
	}
}

// Values returns the values of points as they were written, in the order of the
// points. It opens each file once as long as neighbouring points are in it.
func (x *RunData) Values(points []Point) iter.Seq2[*tfpb.Summary_Value, error] {
	return func(yield func(*tfpb.Summary_Value, error) bool) {
		var open valueFile
		defer open.close()
		for _, p := range points {
			if !yield(x.value(&open, p)) {
				return
			}
		}
	}
}
