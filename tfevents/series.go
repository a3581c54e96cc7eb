package tfevents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// Purge says what becomes of points that a run wrote before it was killed and
// that the resumed run, which went back to a checkpoint, writes again.
type Purge int

const (
	// PurgeExact drops what the resumed run has overtaken. A SessionLog START
	// at step S drops every tag's points after S, and those at S as soon as
	// the new session writes S itself: writers put the restored step there, or
	// the one after it. Points of a file that was written to both before and
	// after that START stay: its writer was alive, so it is not what was
	// resumed. Without START, a point of a later file drops those of its own
	// tag in earlier files that are not before it. Graphs and other values that
	// belong to the run as a whole stay.
	PurgeExact Purge = iota
	// PurgePython does what TensorBoard's Python loader does: each START but
	// the first drops everything at its step or after it, graphs included.
	PurgePython
	// PurgeDataServer does what TensorBoard's data server does, the default on
	// most machines: each point drops those of its tag that are not before it.
	PurgeDataServer
	// KeepAll drops nothing.
	KeepAll
)

// Series holds the points of one tag of a run.
type Series struct {
	Tag      string
	Metadata *tfpb.SummaryMetadata // as TensorBoard completes it
	Points   []Point

	at progress
}

// Plugin returns the name of the plugin that shows the series, or "".
func (s *Series) Plugin() string { return s.Metadata.GetPluginData().GetPluginName() }

func (s *Series) progress() *progress { return &s.at }

func (s *Series) cut(step int64) int {
	n := len(s.Points)
	for len(s.Points) > 0 && s.Points[len(s.Points)-1].Step >= step {
		s.Points = s.Points[:len(s.Points)-1]
	}
	return n - len(s.Points)
}

func (s *Series) drop(step int64, before int, others spared) int {
	n := len(s.Points)
	s.Points = slices.DeleteFunc(s.Points, func(p Point) bool {
		return p.Step >= step && p.session < before && !others.has(p.file)
	})
	return n - len(s.Points)
}

// Point is one value of a series.
type Point struct {
	WallTime float64
	Step     int64
	Value    *tfpb.Summary_Value // as it was written; see [summary.Modern] for one form of all

	event   int // number of the event in the run
	index   int // of the value in the event
	session int // number of the session that wrote it
	file    int // number of the file
}

// RunData is what the events files of one run hold.
type RunData struct {
	Name   string
	Series []*Series // in the order in which their tags were first seen
	Events int       // read, those dropped included
	Purged int       // points dropped
	Damage []error   // *CorruptError, and errors of files that cannot be read

	purger[*Series]
	stepsOnly bool // do not keep the values
}

// RunOptions holds the choices of [ReadRun].
type RunOptions struct {
	Purge   Purge
	MaxSize int64 // largest record accepted; 0 means DefaultMaxSize

	stepsOnly bool
}

// reads reports whether the purge mode's model reads the file.
func (o *RunOptions) reads(name string) bool {
	// A marker that the profiler leaves; only that loader knows it.
	return o.Purge != PurgePython || !strings.HasSuffix(name, ".profile-empty")
}

// Lookup returns the series of a tag, or nil.
func (d *RunData) Lookup(tag string) *Series { return d.byTag[tag] }

// ReadRun reads all files of a run into memory. Damage does not end it: it is
// recorded, and reading continues as the purge mode's model does - after the
// damage with PurgeExact and KeepAll, with the next file otherwise.
func ReadRun(fsys fs.FS, run Run, o *RunOptions) *RunData {
	if o == nil {
		o = new(RunOptions)
	}
	d := &RunData{
		Name:      run.Name,
		purger:    purger[*Series]{mode: o.Purge, byTag: make(map[string]*Series)},
		stepsOnly: o.stepsOnly,
	}
	for _, name := range run.Files {
		if !o.reads(name) {
			continue
		}
		if err := d.readFile(fsys, name, o); err != nil {
			d.Damage = append(d.Damage, err)
		}
	}
	d.Series = slices.DeleteFunc(d.Series, func(s *Series) bool { return len(s.Points) == 0 })
	return d
}

// readFile reads one file. Damage that is skipped goes to d.Damage.
func (d *RunData) readFile(fsys fs.FS, name string, o *RunOptions) error {
	d.startFile()
	skipped, err := eachEvent(fsys, name, o, func(e *tfpb.Event) error {
		if o.Purge == PurgeDataServer && math.IsNaN(e.GetWallTime()) {
			return errNoTime(name)
		}
		d.add(e)
		return nil
	})
	d.Damage = append(d.Damage, skipped...)
	return err
}

// eachEvent calls f with the events of a file, as far as the purge mode's model
// reads it, and returns the damage that it has skipped.
func eachEvent(fsys fs.FS, name string, o *RunOptions, f func(*tfpb.Event) error) (skipped []error, err error) {
	return eachRecord(fsys, name, o, func(data []byte, at int64) error {
		e, err := decodeEvent(name, at, data)
		if err != nil {
			return err
		}
		return f(e)
	})
}

// eachRecord calls f with the records of a file and their offsets, as far as
// the purge mode's model reads it, and returns the damage that it has skipped,
// among which may be what f returns.
func eachRecord(fsys fs.FS, name string, o *RunOptions, f func(data []byte, at int64) error) (skipped []error, err error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	defer file.Close()
	_, skipped, err = o.eachRecordFrom(file, name, 0, f)
	return skipped, err
}

// eachRecordFrom is eachRecord for what is at the given offset of a file that
// is open, which it moves to. It returns where reading may continue once the
// file has changed: at its end, or at the beginning of what is not a record yet.
func (o *RunOptions) eachRecordFrom(file fs.File, name string, from int64, f func(data []byte, at int64) error) (next int64, skipped []error, err error) {
	if err := seek(file, from); err != nil {
		return from, nil, fmt.Errorf("tfevents: %w", err)
	}
	r := tfrecord.NewReader(file)
	r.Name, r.MaxSize = name, o.MaxSize
	size := int64(0)
	if info, err := file.Stat(); err == nil {
		size = info.Size()
	}
	r.StartAt(from, size)
	thorough := o.Purge == PurgeExact || o.Purge == KeepAll
	r.Resync = thorough
	r.SkipDataCRC = o.Purge == PurgeDataServer // it does not check it
	next = from
	for {
		at := r.Offset()
		data, err := r.Next()
		if err == io.EOF {
			return next, skipped, nil
		}
		if err == nil {
			err = f(data, at)
		}
		switch {
		case err == nil:
		case thorough && skippable(err):
			skipped = append(skipped, err)
			if lengthDamaged(err) {
				continue // no record follows, unless the next call finds one
			}
		default:
			return next, skipped, err
		}
		next = r.Offset()
	}
}

// lengthDamaged reports whether err is damage whose end had to be searched.
func lengthDamaged(err error) bool {
	var damage *tfrecord.CorruptError
	return errors.As(err, &damage) && damage.Part == tfrecord.PartLength
}

// seek moves to an offset of a file that was just opened.
func seek(file fs.File, offset int64) error {
	if offset == 0 {
		return nil
	}
	if s, ok := file.(io.Seeker); ok {
		_, err := s.Seek(offset, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, file, offset)
	return err
}

// skippable reports whether err is damage after which reading continues.
func skippable(err error) bool {
	var damage *tfrecord.CorruptError
	return errors.As(err, &damage) && damage.Skippable()
}

// add stores what e holds.
func (d *RunData) add(e *tfpb.Event) {
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

// valuesOf returns the values that a run keeps of e, as they were written.
func valuesOf(e *tfpb.Event) []*tfpb.Summary_Value {
	if s := e.GetSummary(); s != nil {
		return s.GetValue()
	}
	return summary.Modern(e) // of graphs and run metadata
}

func (d *RunData) addValue(e *tfpb.Event, v *tfpb.Summary_Value, index int) {
	s := d.byTag[v.GetTag()]
	if s == nil {
		s = &Series{Tag: v.GetTag(), Metadata: metadataOf(d.mode, v)}
		s.at.ofRun = describesRun(s.Plugin())
		d.byTag[s.Tag] = s
		d.Series = append(d.Series, s)
	}
	p := Point{WallTime: e.GetWallTime(), Step: e.GetStep(), Value: v, event: d.Events - 1, index: index, session: d.session, file: d.file()}
	if d.stepsOnly {
		p.Value = nil
	}
	d.purgeTag(s, p.Step)
	if d.mode.keeps(s.Metadata, v) {
		s.Points = append(s.Points, p)
	}
}

// metadataOf returns the metadata of a series that begins with v.
func metadataOf(mode Purge, v *tfpb.Summary_Value) *tfpb.SummaryMetadata {
	if m := v.GetMetadata(); mode == PurgeDataServer && m.GetDataClass() != tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return m // which counts, even if an old value is of another kind
	}
	if m := summary.ModernValue(v).GetMetadata(); m != nil {
		return m
	}
	return new(tfpb.SummaryMetadata)
}

// parseVersion returns the number in a file_version, 0 if there is none.
func parseVersion(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimPrefix(s, "brain.Event:"), 64)
	if err != nil {
		return 0
	}
	return v
}
