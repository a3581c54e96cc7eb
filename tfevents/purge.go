package tfevents

import (
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// purger drops points of a run as its mode says.
type purger struct {
	mode   Purge
	byTag  map[string]*Series
	purged int

	version  float64 // of the events, as the last file_version says
	started  bool    // a START was seen
	lastStep int64   // of the last summary

	session   int   // counts files and STARTs
	restarted int64 // step of a START that the new session may write again
	restart   bool  // restarted is set
}

// startFile begins a new session: no writer appends to a file that it did not
// begin.
func (p *purger) startFile() {
	p.session++
	p.restart = false
}

// purgeFor drops what e, which is about to be stored, makes obsolete in other
// tags.
func (p *purger) purgeFor(e *tfpb.Event, values []*tfpb.Summary_Value) {
	switch p.mode {
	case PurgePython:
		p.purgePython(e, values)
	case PurgeExact:
		p.purgeExact(e)
	}
}

func (p *purger) purgePython(e *tfpb.Event, values []*tfpb.Summary_Value) {
	if v := e.GetFileVersion(); v != "" {
		p.version = parseVersion(v)
	}
	isSummary := len(values) > 0 || e.GetSummary() != nil
	switch {
	case p.version >= 2:
		if e.GetSessionLog().GetStatus() == tfpb.SessionLog_START {
			if p.started {
				p.dropAll(e.GetStep(), false)
			}
			p.started = true
		}
	case isSummary && e.GetStep() < p.lastStep:
		for _, v := range values {
			if s := p.byTag[v.GetTag()]; s != nil {
				p.drop(s, func(pt Point) bool { return pt.Step >= e.GetStep() })
			}
		}
	}
	if isSummary {
		p.lastStep = e.GetStep()
	}
}

func (p *purger) purgeExact(e *tfpb.Event) {
	if e.GetSessionLog().GetStatus() == tfpb.SessionLog_START {
		p.session++
		p.restart, p.restarted = true, e.GetStep()
		if e.GetStep() < math.MaxInt64 {
			p.dropAll(e.GetStep()+1, true)
		}
		return
	}
	if p.restart && e.GetSummary() != nil && e.GetStep() == p.restarted {
		p.restart = false
		p.dropAll(p.restarted, true)
	}
}

// purgeTag drops what a point at the given step makes obsolete in its own tag.
func (p *purger) purgeTag(s *Series, step int64) {
	switch p.mode {
	case PurgeDataServer:
		for n := len(s.Points); n > 0 && s.Points[n-1].Step >= step; n-- {
			s.Points = s.Points[:n-1]
			p.purged++
		}
	case PurgeExact:
		if belongsToRun(s) || s.session == p.session && step >= s.least {
			return
		}
		s.session, s.least = p.session, step
		p.drop(s, func(pt Point) bool { return pt.session < p.session && pt.Step >= step })
	}
}

// dropAll drops the points at step and behind of all tags. If exact, those of
// the current session stay, and what belongs to the run as a whole.
func (p *purger) dropAll(step int64, exact bool) {
	for _, s := range p.byTag {
		if exact && belongsToRun(s) {
			continue
		}
		p.drop(s, func(pt Point) bool { return pt.Step >= step && !(exact && pt.session == p.session) })
	}
}

func (p *purger) drop(s *Series, obsolete func(Point) bool) {
	n := len(s.Points)
	s.Points = slices.DeleteFunc(s.Points, obsolete)
	p.purged += n - len(s.Points)
}

// belongsToRun reports whether the series describes the run instead of a step
// of it.
func belongsToRun(s *Series) bool {
	switch s.Plugin() {
	case PluginGraphs, PluginRunMetadata, PluginRunMetadataGraph, PluginKerasModel, PluginTaggedRunMetadata,
		PluginHParams, PluginCustomScalars:
		return true
	}
	return false
}
