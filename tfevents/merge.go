package tfevents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// MergeReport says what MergeRun did.
type MergeReport struct {
	Events int     // written
	Purged int     // points left out
	Damage []error // skipped in the files read
}

// MergeRun writes the events of a run's files to w as one stream, without the points that a resumed
// training has overtaken. If several writers have added to one series at the same time, the events
// of their files are ordered by time, as in [Series.Points]; otherwise they are in the order of the
// files. It keeps only the first SessionLog START: a later one would make TensorBoard drop valid
// points. It reads the files twice and keeps no values in memory; they must not grow meanwhile.
// Only PurgeExact and KeepAll are allowed: the other modes stop in the middle of damaged files.
func MergeRun(w io.Writer, fsys fs.FS, run Run, o *RunOptions) (*MergeReport, error) {
	opt := RunOptions{}
	if o != nil {
		opt = *o
	}
	if opt.Purge != PurgeExact && opt.Purge != KeepAll {
		return nil, errors.New("tfevents: a run is merged with PurgeExact or KeepAll only")
	}
	opt.places = true
	d := ReadRun(fsys, run, &opt)
	m := merger{
		w:        NewEventsWriter(w, &EventsWriterOptions{Continue: true}),
		data:     d,
		kept:     make(map[keptKey]*keptPoints),
		hasNamed: make(map[string]bool),
	}
	defer m.stop()
	for _, files := range m.parts() {
		for at, e := range d.eventsInOrder(files) {
			if err := m.event(e, at); err != nil {
				return nil, fmt.Errorf("tfevents: merging %s: %w", run.Files[at.file], err)
			}
		}
	}
	if n := d.points() - m.met; n > 0 {
		return nil, fmt.Errorf("tfevents: merging run %s: %d points are not there any more: a file has changed meanwhile; merge again", run.Name, n)
	}
	return &MergeReport{Events: m.written, Purged: d.Purged, Damage: d.Damage}, nil
}

// points counts the points of all series.
func (x *RunData) points() (n int) {
	for _, s := range x.Series {
		n += s.Len()
	}
	return n
}

// place is the position of an event.
type place struct {
	file   int
	offset int64
}

// keptPoints walks the points of a series that are kept. They are in the order in
// which the files hold them.
type keptPoints struct {
	next func() (Point, bool)
	stop func()
	p    Point // the first that has not been met
	ok   bool  // there is one
}

// meets reports whether the value at a place is the next point, and if so moves to the point after
// it.
func (k *keptPoints) meets(at place, index int) bool {
	if !k.ok || k.p.cell.file != at.file || k.p.cell.offset != at.offset || k.p.cell.index != index {
		return false
	}
	k.p, k.ok = k.next()
	return true
}

type merger struct {
	w        *EventsWriter
	data     *RunData
	kept     map[keptKey]*keptPoints
	together bool            // several files are read at a time
	hasNamed map[string]bool // tags whose metadata has been written
	met      int             // points
	written  int
	version  bool // a file_version has been written
	started  bool // a START has been written
	err      error
}

// stop ends all walks.
func (m *merger) stop() {
	for _, k := range m.kept {
		k.stop()
	}
}

// event writes the part of the next event that is kept.
func (m *merger) event(e *tfpb.Event, at place) error {
	switch what := e.GetWhat().(type) {
	case *tfpb.Event_FileVersion:
		if m.version {
			return nil
		}
		m.version = true
	case *tfpb.Event_SessionLog:
		if what.SessionLog.GetStatus() == tfpb.SessionLog_START {
			if m.started {
				return nil
			}
			m.started = true
		}
	case *tfpb.Event_Summary:
		kept := m.keptValues(at, what.Summary)
		if len(kept) == 0 && len(what.Summary.GetValue()) > 0 {
			return nil
		}
		what.Summary.Value = kept
	case *tfpb.Event_GraphDef, *tfpb.Event_TaggedRunMetadata:
		if !m.keeps(decode.Modern(e)[0].GetTag(), at, 0) {
			return nil
		}
	}
	if !m.version { // as after damage: without it, TensorBoard takes each step back for a restart
		m.version = true
		m.write(&tfpb.Event{WallTime: e.GetWallTime(), What: &tfpb.Event_FileVersion{FileVersion: fileVersion}})
	}
	m.write(e)
	return m.err
}

func (m *merger) write(e *tfpb.Event) {
	if m.err = m.w.WriteEvent(e); m.err == nil {
		m.written++
	}
}

// keptKey names what is walked: the points of a tag, in one file if several files are read
// together.
type keptKey struct {
	tag  string
	file int // 0 if all
}

// keeps reports whether the value of a tag at a place is kept. It must be asked of
// all values of a file, in their order.
func (m *merger) keeps(tag string, at place, index int) bool {
	key := keptKey{tag: tag}
	if m.together {
		key.file = at.file + 1
	}
	k := m.kept[key]
	if k == nil {
		k = &keptPoints{next: func() (p Point, ok bool) { return p, false }, stop: func() {}}
		if s := m.data.Lookup(tag); s != nil {
			k.next, k.stop = iter.Pull(s.inFiles(key.file - 1))
		}
		k.p, k.ok = k.next()
		m.kept[key] = k
	}
	if !k.meets(at, index) {
		return false
	}
	m.met++
	return true
}

func (m *merger) keptValues(at place, s *tfpb.Summary) (kept []*tfpb.Summary_Value) {
	for i, v := range s.GetValue() {
		if !m.keeps(v.GetTag(), at, i) {
			continue
		}
		m.restoreMetadata(v)
		kept = append(kept, v)
	}
	return kept
}

// restoreMetadata gives v the metadata of its tag if the value that carried them has been left out.
func (m *merger) restoreMetadata(v *tfpb.Summary_Value) {
	if v.GetMetadata() == nil && v.GetTensor() != nil && !m.hasNamed[v.GetTag()] {
		if s := m.data.Lookup(v.GetTag()); s != nil && s.Plugin() != "" {
			v.Metadata = proto.CloneOf(s.Metadata)
		}
	}
	if v.GetMetadata() != nil {
		m.hasNamed[v.GetTag()] = true
	}
}
