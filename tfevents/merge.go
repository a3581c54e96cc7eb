package tfevents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// MergeReport says what MergeRun did.
type MergeReport struct {
	Events int     // written
	Purged int     // points left out
	Damage []error // skipped in the files read
}

// MergeRun writes the events of a run's files, which resumed trainings left, to
// w as one stream without the points that a resumed training has overtaken. Of
// the marks of sessions that began, only the first is kept: a later one would
// make TensorBoard drop points that belong there. It reads the files twice and
// keeps no values in memory; they must not grow meanwhile. Only PurgeExact and
// KeepAll can be merged by: the others leave damaged files half read.
func MergeRun(w io.Writer, fsys fs.FS, run Run, o *RunOptions) (*MergeReport, error) {
	opt := RunOptions{}
	if o != nil {
		opt = *o
	}
	if opt.Purge != PurgeExact && opt.Purge != KeepAll {
		return nil, errors.New("tfevents: a run is merged with PurgeExact or KeepAll only")
	}
	opt.stepsOnly = true
	d := ReadRun(fsys, run, &opt)
	m := merger{
		w:        NewEventsWriter(w, &EventsWriterOptions{Continue: true}),
		kept:     make(map[valueID]struct{}),
		data:     d,
		hasNamed: make(map[string]bool),
	}
	for _, s := range d.Series {
		for _, p := range s.Points {
			m.kept[valueID{p.event, p.index}] = struct{}{}
		}
	}
	for _, name := range run.Files {
		// Damage was recorded by the first reading.
		if _, err := eachEvent(fsys, name, &opt, m.event); err != nil && m.err != nil {
			return nil, fmt.Errorf("tfevents: merging %s: %w", name, m.err)
		}
	}
	return &MergeReport{Events: m.written, Purged: d.Purged, Damage: d.Damage}, nil
}

// valueID names a value of a run.
type valueID struct{ event, index int }

type merger struct {
	w        *EventsWriter
	kept     map[valueID]struct{}
	data     *RunData
	hasNamed map[string]bool // tags whose metadata has been written
	n        int             // events read
	written  int
	version  bool // a file_version has been written
	started  bool // a START has been written
	err      error
}

// event writes what is to be kept of the next event.
func (m *merger) event(e *tfpb.Event) error {
	number := m.n
	m.n++
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
		kept := m.keptValues(number, what.Summary)
		if len(kept) == 0 && len(what.Summary.GetValue()) > 0 {
			return nil
		}
		what.Summary.Value = kept
	case *tfpb.Event_GraphDef, *tfpb.Event_TaggedRunMetadata:
		if !m.keeps(number, 0) {
			return nil
		}
	}
	if m.err = m.w.WriteEvent(e); m.err == nil {
		m.written++
	}
	return m.err
}

func (m *merger) keeps(event, index int) bool {
	_, ok := m.kept[valueID{event, index}]
	return ok
}

func (m *merger) keptValues(event int, s *tfpb.Summary) (kept []*tfpb.Summary_Value) {
	for i, v := range s.GetValue() {
		if !m.keeps(event, i) {
			continue
		}
		m.restoreMetadata(v)
		kept = append(kept, v)
	}
	return kept
}

// restoreMetadata gives v the metadata of its tag if the value that carried it
// has been left out.
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
