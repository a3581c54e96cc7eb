package tfevents

import (
	"iter"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Series holds the points of one tag of a run.
type Series struct {
	Tag      string
	Metadata *tfpb.SummaryMetadata // as TensorBoard completes it

	unnamed   bool // its first value says no name to display
	points    column
	blobs     int // in the longest sequence, of a series of such, but for the last one
	lastBlobs int // in the last sequence
	kind      kind
	old       int // points of sessions before the one in newest
	newest    int // session of the last point
	at        progress
	number    int // in RunData.all
	follows   int // there: the series that came next the last time

	front int // points that were thinned out, at the beginning
	level int // how often by half
}

// Plugin returns the name of the plugin that shows the series, or "".
func (s *Series) Plugin() string { return s.Metadata.GetPluginData().GetPluginName() }

// undescribed reports whether no value has said yet what the series shows.
func (s *Series) undescribed() bool {
	return s.Plugin() == "" && s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_UNKNOWN
}

// HasDisplayName reports whether the writer gave the series a display name. If not, the one in
// Metadata, if any, is the tag.
func (s *Series) HasDisplayName() bool { return !s.unnamed }

// MaxBlobs returns the largest number of blobs in a point of a series of blob sequences, 0 for
// other series. Of several points in a row at one step, only the last one counts.
func (s *Series) MaxBlobs() int { return max(s.blobs, s.lastBlobs) }

// countBlobs records the number of blobs of the next point.
func (s *Series) countBlobs(v *valueScan, step int64) {
	if s.points.n == 0 || s.points.tail.step != step {
		s.blobs = max(s.blobs, s.lastBlobs)
	}
	if n := v.countBlobs(); n > 0 { // a value of another kind takes no point away
		s.lastBlobs = n
	}
}

// Len returns the number of points.
func (s *Series) Len() int { return s.points.n }

// Max returns the largest step and the latest time of the points, which need not be those of the
// last point.
func (s *Series) Max() (step int64, wallTime float64) {
	return s.points.maxStep, s.points.maxWall
}

// Bytes returns how many bytes the values of the points take, encoded.
func (s *Series) Bytes() int64 {
	return int64(s.points.n-s.points.sized)*simpleValueSize(s.Tag) + s.points.sizeTotal
}

// Points returns the points in the order of the files, or of time if several writers have added to
// the series at the same time.
func (s *Series) Points() iter.Seq[Point] {
	return func(yield func(Point) bool) {
		s.points.inOrder(func(c *cell) bool { return yield(s.point(c)) })
	}
}

// inFiles returns the points in the order of the files, or only those of one file if its number is
// not negative.
func (s *Series) inFiles(file int) iter.Seq[Point] {
	return func(yield func(Point) bool) {
		s.points.eachOfFile(func(_ int, c *cell) bool { return file >= 0 && c.file != file || yield(s.point(c)) })
	}
}

func (s *Series) point(c *cell) Point {
	return Point{WallTime: c.wallTime(), Step: c.step, series: s, cell: *c}
}

// FirstLast returns the first and the last point of a series that has any.
func (s *Series) FirstLast() (first, last Point, ok bool) {
	if s.points.n == 0 {
		return Point{}, Point{}, false
	}
	begin, end := s.points.ends()
	return s.point(&begin), s.point(&end), true
}

// Times returns the steps and the times of the points in their order, at less cost than Points.
func (s *Series) Times() iter.Seq2[int64, float64] {
	return func(yield func(step int64, wallTime float64) bool) {
		s.points.inOrder(func(c *cell) bool { return yield(c.step, c.wallTime()) })
	}
}

func (s *Series) progress() *progress { return &s.at }

func (s *Series) cut(step int64) int { return s.points.cut(step) }

func (s *Series) beginsWith(step int64, number uint32, others writers) bool {
	if s.points.n == 0 || others.spare(s.points.parts[0].file, s.points.isIn) {
		return false
	}
	first := s.points.first()
	return first.step == step && first.form != formOther && first.number == number && s.points.tail.step > step
}

func (s *Series) drop(step int64, before int, others writers) int {
	if s.newest < before {
		s.old = s.points.n // all of them
	}
	dropped := s.points.drop(s.old, step, others)
	s.old -= dropped
	return dropped
}

// unheld returns the points whose values are not in memory.
func (s *Series) unheld() (points []Point) {
	for p := range s.Points() {
		if _, ok := p.Scalar(); !ok {
			points = append(points, p)
		}
	}
	return points
}
