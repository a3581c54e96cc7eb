package tfevents

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// A reader that keeps a whole run in memory, decoded by the general decoder: what
// ReadRun is held against.

// memorySeries holds the points of one tag of a run.
type memorySeries struct {
	Tag      string
	Metadata *tfpb.SummaryMetadata // as TensorBoard completes it
	Points   []memoryPoint

	at progress
}

// Plugin returns the name of the plugin that shows the series, or "".
func (s *memorySeries) Plugin() string { return s.Metadata.GetPluginData().GetPluginName() }

func (s *memorySeries) progress() *progress { return &s.at }

func (s *memorySeries) cut(step int64) int {
	n := len(s.Points)
	for len(s.Points) > 0 && s.Points[len(s.Points)-1].Step >= step {
		s.Points = s.Points[:len(s.Points)-1]
	}
	return n - len(s.Points)
}

func (s *memorySeries) beginsWith(step int64, number uint32, others writers) bool {
	if len(s.Points) < 2 || others.spare(s.Points[0].file, s.isIn) || s.Points[0].Step != step || s.Points[len(s.Points)-1].Step <= step {
		return false
	}
	first, ok := float32Of(s.Points[0].Value)
	return ok && first == number
}

// float32Of returns the bits of a value that is a float32.
func float32Of(v *tfpb.Summary_Value) (bits uint32, ok bool) {
	if _, simple := v.GetValue().(*tfpb.Summary_Value_SimpleValue); !simple && v.GetTensor().GetDtype() != tfpb.DataType_DT_FLOAT {
		return 0, false
	}
	x, ok := decode.Scalar(v)
	return math.Float32bits(float32(x)), ok
}

func (s *memorySeries) isIn(file int) bool {
	return slices.ContainsFunc(s.Points, func(p memoryPoint) bool { return p.file == file })
}

func (s *memorySeries) drop(step int64, before int, others writers) int {
	n := len(s.Points)
	was := memorySeries{Points: slices.Clone(s.Points)}
	s.Points = slices.DeleteFunc(s.Points, func(p memoryPoint) bool {
		return p.Step >= step && p.session < before && !others.spare(p.file, was.isIn)
	})
	return n - len(s.Points)
}

// memoryPoint is one value of a series.
type memoryPoint struct {
	WallTime float64
	Step     int64
	Value    *tfpb.Summary_Value // as it was written; see [decode.Modern] for one form of all

	event   int // number of the event in the run
	index   int // of the value in the event
	session int // number of the session that wrote it
	file    int // number of the file
}

// memoryRun is what the events files of one run hold.
type memoryRun struct {
	Name   string
	Series []*memorySeries // in the order in which their tags were first seen
	Events int             // read, those dropped included
	Purged int             // points dropped
	Damage []error         // *CorruptError, and errors of files that cannot be read

	read [][]byte // what was read of each file
	purger[*memorySeries]
}

// Lookup returns the series of a tag, or nil.
func (d *memoryRun) Lookup(tag string) *memorySeries { return d.byTag[tag] }

// readInMemory reads all files of a run into memory. Damage does not end it: it is
// recorded, and reading continues as the purge mode's model does - after the
// damage with PurgeExact and KeepAll, with the next file otherwise.
func readInMemory(fsys fs.FS, run Run, o *RunOptions) *memoryRun {
	if o == nil {
		o = new(RunOptions)
	}
	d := &memoryRun{
		Name:   run.Name,
		purger: purger[*memorySeries]{mode: o.Purge, byTag: make(map[string]*memorySeries)},
	}
	for _, name := range run.Files {
		if !o.reads(name) {
			continue
		}
		if err := d.readFile(fsys, name, o); err != nil {
			d.Damage = append(d.Damage, err)
		}
	}
	d.Series = slices.DeleteFunc(d.Series, func(s *memorySeries) bool { return len(s.Points) == 0 })
	return d
}

// readFile reads one file. Damage that is skipped goes to d.Damage.
func (d *memoryRun) readFile(fsys fs.FS, name string, o *RunOptions) error {
	d.startFile(name)
	file, err := fsys.Open(name)
	if err != nil {
		return fmt.Errorf("tfevents: %w", err)
	}
	defer file.Close()
	begin := int64(0)
	whole, _ := fs.ReadFile(fsys, name)
	if o.Purge == PurgeExact {
		begin = d.beginOf(whole)
	}
	next, skipped, err := o.eachRecordFrom(file, name, begin, func(data []byte, at int64) error {
		e, err := decodeEvent(name, at, data)
		if err != nil {
			return err
		}
		if o.Purge == PurgeDataServer && math.IsNaN(e.GetWallTime()) {
			return errNoTime(name)
		}
		d.add(e)
		return nil
	})
	d.read = append(d.read, whole[:next])
	d.Damage = append(d.Damage, skipped...)
	return err
}

// beginOf returns how much of a file is that of an earlier one.
func (d *memoryRun) beginOf(whole []byte) (begin int64) {
	for _, other := range d.read {
		n := min(len(whole), len(other))
		if n >= leastHead && bytes.Equal(whole[:n], other[:n]) {
			begin = max(begin, int64(n))
		}
	}
	return begin
}

// add stores what e holds.
func (d *memoryRun) add(e *tfpb.Event) {
	d.Events++
	if d.mode == PurgeDataServer && math.IsInf(e.GetWallTime(), 0) {
		return // the data server skips it
	}
	values := valuesOf(e)
	facts := factsOf(e, values)
	if d.purgeFor(&facts) {
		for _, v := range values {
			d.purgeOwn(v.GetTag(), e.GetStep())
		}
	}
	for i, v := range values {
		d.addValue(e, v, i)
	}
	d.Purged = d.purged
}

func (d *memoryRun) addValue(e *tfpb.Event, v *tfpb.Summary_Value, index int) {
	s := d.byTag[v.GetTag()]
	if s == nil {
		s = &memorySeries{Tag: v.GetTag()}
		s.describe(metadataOf(d.mode, v))
		d.byTag[s.Tag] = s
		d.Series = append(d.Series, s)
	} else if s.Plugin() == "" && s.Metadata.GetDataClass() == 0 && d.mode != PurgeDataServer {
		s.describe(metadataOf(d.mode, v))
	}
	p := memoryPoint{WallTime: e.GetWallTime(), Step: e.GetStep(), Value: v, event: d.Events - 1, index: index, session: d.session, file: d.file()}
	number, isNumber := float32Of(v)
	if !d.purgeTag(s, p.Step, number, isNumber) && d.mode.keeps(s.Metadata, v) {
		s.Points = append(s.Points, p)
	}
}

func (s *memorySeries) describe(m *tfpb.SummaryMetadata) {
	s.Metadata = m
	s.at.ofRun = decode.DescribesRun(s.Plugin())
}
