package tfevents

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// RunIndex is what [ReadRun] returns in the form for large logs: it keeps some
// ten bytes of a scalar and, of all else, where in the files it is.
type RunIndex struct {
	Name   string
	Series []*SeriesIndex // in the order in which their tags were first seen
	Events int            // read, those dropped included
	Purged int            // points dropped
	Began  float64        // the earliest time of an event, +Inf without events
	Damage []error        // *CorruptError, and errors of files that cannot be read

	fsys  fs.FS
	files []indexedFile
	o     RunOptions
	all   []*SeriesIndex // those without a point too

	purger[*SeriesIndex]
	scan  eventScan
	facts eventFacts
	last  *SeriesIndex // the one that a value was added to last
}

// SeriesIndex holds the points of one tag of a run.
type SeriesIndex struct {
	Tag      string
	Metadata *tfpb.SummaryMetadata // as TensorBoard completes it

	unnamed bool // its first value says no name to display
	points  column
	blobs   int // in the longest sequence, of a series of such
	kind    kind
	old     int // points of sessions before the one in newest
	newest  int // session of the last point
	at      progress
	follows *SeriesIndex // the series that came next the last time
}

// Plugin returns the name of the plugin that shows the series, or "".
func (s *SeriesIndex) Plugin() string { return s.Metadata.GetPluginData().GetPluginName() }

// Unnamed reports whether the writer gave the series no name to display: that in
// Metadata is then the tag, if any.
func (s *SeriesIndex) Unnamed() bool { return s.unnamed }

// LongestBlobs returns the most blobs that a point of a series of blob sequences
// has had, 0 for other series.
func (s *SeriesIndex) LongestBlobs() int { return s.blobs }

// Len returns the number of points.
func (s *SeriesIndex) Len() int { return s.points.n }

// Max returns the largest step and the latest time of the points, not all of
// which need be those of the last one.
func (s *SeriesIndex) Max() (step int64, wallTime float64) {
	return s.points.maxStep, s.points.maxWall
}

// Bytes returns how many bytes the values of the points take, encoded.
func (s *SeriesIndex) Bytes() (n int64) {
	simple := simpleValueSize(s.Tag)
	s.points.each(func(p *cell) bool {
		if p.form == formSimple {
			n += simple
		} else {
			n += int64(p.size)
		}
		return true
	})
	return n
}

// simpleValueSize returns the encoded size of a simple_value with a tag.
func simpleValueSize(tag string) int64 {
	v := tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_SimpleValue{}}
	return int64(proto.Size(&v))
}

// IndexPoint is one point of a [SeriesIndex]. [RunIndex.Value] returns its value.
type IndexPoint struct {
	WallTime float64
	Step     int64

	series *SeriesIndex
	cell   cell
}

// Points returns the points in their order.
func (s *SeriesIndex) Points() iter.Seq[IndexPoint] {
	return func(yield func(IndexPoint) bool) {
		s.points.each(func(c *cell) bool {
			return yield(IndexPoint{WallTime: c.wallTime(), Step: c.step, series: s, cell: *c})
		})
	}
}

// Scalar returns the value of a scalar that the index holds: one of 32 bits, in
// either style, as all writers make them. [summary.ScalarOf] knows the others.
func (p IndexPoint) Scalar() (float64, bool) {
	return float64(math.Float32frombits(p.cell.number)), p.cell.form != formOther
}

func (s *SeriesIndex) progress() *progress { return &s.at }

func (s *SeriesIndex) cut(step int64) int { return s.points.cut(step) }

func (s *SeriesIndex) drop(step int64, before int, others spared) int {
	if s.newest < before {
		s.old = s.points.n // all of them
	}
	dropped := s.points.drop(s.old, step, others)
	s.old -= dropped
	return dropped
}

// IndexRun reads all files of a run as [ReadRun] does, once from their
// beginnings to their ends. The index reads them again where a value is asked
// for. [RunIndex.Update] adds what has been appended since.
func IndexRun(fsys fs.FS, run Run, o *RunOptions) *RunIndex {
	x := &RunIndex{Name: run.Name, fsys: fsys, Began: math.Inf(1)}
	if o != nil {
		x.o = *o
	}
	x.purger = purger[*SeriesIndex]{mode: x.o.Purge, byTag: make(map[string]*SeriesIndex)}
	x.Update(run.Files)
	return x
}

// IndexRuns indexes runs side by side, as many as there are processors. The
// goroutines that do it have ended when it returns.
func IndexRuns(fsys fs.FS, runs []Run, o *RunOptions) []*RunIndex {
	indexes := make([]*RunIndex, len(runs))
	parallel.Each(context.Background(), len(runs), func(i int) { indexes[i] = IndexRun(fsys, runs[i], o) })
	return indexes
}

// Lookup returns the series of a tag, or nil.
func (x *RunIndex) Lookup(tag string) *SeriesIndex { return x.byTag[tag] }

// addRecord adds the event in a record.
func (x *RunIndex) addRecord(data []byte, file int, at int64) error {
	if x.scan.parse(data) {
		x.facts = eventFacts{step: x.scan.step, time: x.scan.wallTime, summary: true, values: true}
	} else {
		e, err := decodeEvent(x.files[file].name, at, data)
		if err != nil {
			return err
		}
		x.facts = x.scan.fill(e)
	}
	e := &x.scan
	if x.o.Purge == PurgeDataServer && math.IsNaN(e.wallTime) {
		return errNoTime(x.files[file].name)
	}
	x.Events++
	if e.wallTime < x.Began {
		x.Began = e.wallTime
	}
	if x.o.Purge == PurgeDataServer && math.IsInf(e.wallTime, 0) {
		return nil // the data server skips it
	}
	if x.purgeFor(&x.facts) {
		for i := range e.values {
			x.purgeOwn(string(e.values[i].tag), e.step)
		}
	}
	c := cell{wall: math.Float64bits(e.wallTime), step: e.step, file: file, offset: at}
	for i := range e.values {
		c.index = i
		x.addValue(&e.values[i], &c)
	}
	return nil
}

// addValue adds a value at the point c, of which it sets the form.
func (x *RunIndex) addValue(v *valueScan, c *cell) {
	s := x.seriesOf(v)
	s.kind.note(v)
	x.purgeTag(s, c.step)
	if !x.keeps(s, v) {
		return
	}
	if s.newest != x.session {
		s.newest, s.old = x.session, s.points.n
	}
	if s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE {
		s.blobs = max(s.blobs, v.countBlobs())
	}
	c.form, c.number, c.size = v.form, v.number, v.size()
	s.points.add(c)
}

// keeps reports whether the value becomes a point of its series.
func (x *RunIndex) keeps(s *SeriesIndex, v *valueScan) bool {
	if x.mode == PurgeExact || x.mode == KeepAll {
		return true
	}
	if v.form != formOther && s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_SCALAR {
		return true // without a look at the rest of it
	}
	return x.mode.keeps(s.Metadata, v.message())
}

// seriesOf returns the series that the value belongs to. Most writers write
// their tags in the same order again and again.
func (x *RunIndex) seriesOf(v *valueScan) *SeriesIndex {
	if x.last != nil {
		if s := x.last.follows; s != nil && s.Tag == string(v.tag) {
			x.last = s
			return s
		}
	}
	s := x.byTag[string(v.tag)]
	if s == nil {
		first := v.outline()
		s = &SeriesIndex{Tag: string(v.tag), Metadata: metadataOf(x.mode, first), unnamed: first.GetMetadata().GetDisplayName() == ""}
		s.at.ofRun = describesRun(s.Plugin())
		s.kind.odd = s.Plugin() != summary.PluginScalars
		x.byTag[s.Tag] = s
		x.all = append(x.all, s)
	}
	if x.last != nil {
		x.last.follows = s
	}
	x.last = s
	return s
}

// Value returns the value of a point of one of the series as it was written.
// It reads the file, except for a scalar in the style of TensorFlow 1.
func (x *RunIndex) Value(p IndexPoint) (*tfpb.Summary_Value, error) {
	var open valueFile
	defer open.close()
	return x.value(&open, p)
}

func (x *RunIndex) value(open *valueFile, p IndexPoint) (*tfpb.Summary_Value, error) {
	if p.cell.form == formSimple {
		number := math.Float32frombits(p.cell.number)
		return &tfpb.Summary_Value{Tag: p.series.Tag, Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: number}}, nil
	}
	e, err := x.eventAt(open, x.files[p.cell.file].name, p.cell.offset)
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

// Values returns the values of points as they were written, in the order of the
// points. It opens each file once as long as neighbouring points are in it.
func (x *RunIndex) Values(points []IndexPoint) iter.Seq2[*tfpb.Summary_Value, error] {
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

// valueFile is the file that a value was read from last.
type valueFile struct {
	name string
	f    fs.File
}

func (v *valueFile) close() {
	if v.f != nil {
		v.f.Close()
	}
	v.f = nil
}

// at returns the file, ready to be read from an offset.
func (v *valueFile) at(fsys fs.FS, name string, offset int64) (fs.File, error) {
	if _, seeks := v.f.(io.Seeker); v.f == nil || v.name != name || !seeks {
		v.close()
		f, err := fsys.Open(name)
		if err != nil {
			return nil, err
		}
		v.f, v.name = f, name
		return f, seek(f, offset)
	}
	_, err := v.f.(io.Seeker).Seek(offset, io.SeekStart)
	return v.f, err
}

// valueBufferSize is what is read at first for a value: most are small.
const valueBufferSize = 4 << 10

func (x *RunIndex) eventAt(open *valueFile, name string, offset int64) (*tfpb.Event, error) {
	f, err := open.at(x.fsys, name, offset)
	if err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	r := tfrecord.NewReader(f)
	r.Name, r.MaxSize, r.SkipDataCRC, r.Buffer = name, x.o.MaxSize, x.o.Purge == PurgeDataServer, valueBufferSize
	size := int64(0)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	r.StartAt(offset, size)
	data, err := r.Next()
	if err == io.EOF {
		return nil, fmt.Errorf("tfevents: %s has lost the record at offset %d: %w", name, offset, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
	}
	return decodeEvent(name, offset, data)
}
