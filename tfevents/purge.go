package tfevents

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
)

// purger drops points of a run according to its mode.
type purger[S purgeable] struct {
	mode   Purge
	byTag  map[string]S
	purged int

	version  float64 // of the events, as the last file_version says
	started  bool    // a START was seen
	lastStep int64   // of the last summary

	files     []lifetime // of those that were begun, the current one last
	session   int        // counts files and STARTs
	restarted int64      // step of a START that the new session may write again
	restart   bool       // restarted is set
	resumed   int        // the session of that START
	silent    bool       // it has written no summary yet
	others    writers    // that it does not concern
	met       bool       // the current file has had a summary at a time
	alive     writers    // when that came
}

// purgeable is a series from which a purger drops points.
type purgeable interface {
	// progress returns what the purger notes about the series.
	progress() *progress
	// cut drops the points at the end that have at least the given step.
	cut(step int64) (dropped int)
	// beginsWith reports whether the first of several points is this float32 at this step, and not
	// from another writer.
	beginsWith(step int64, number uint32, others writers) bool
	// drop drops the points of sessions before the given one from the given step on, except those of
	// other writers.
	drop(step int64, before int, others writers) (dropped int)
}

// progress says how far a series has come.
type progress struct {
	ofRun   bool  // the series describes the run instead of a step of it
	session int   // the last that wrote to the series
	least   int64 // the least step that it wrote
}

// eventFacts is what matters of an event besides its values.
type eventFacts struct {
	step    int64
	time    float64
	version string // a file_version
	start   bool   // a SessionLog START
	stop    bool   // a SessionLog STOP
	summary bool
	values  bool // a summary, or something else that is shown
}

func factsOf(e *tfpb.Event, values []*tfpb.Summary_Value) eventFacts {
	return eventFacts{
		step:    e.GetStep(),
		time:    e.GetWallTime(),
		version: e.GetFileVersion(),
		start:   e.GetSessionLog().GetStatus() == tfpb.SessionLog_START,
		stop:    e.GetSessionLog().GetStatus() == tfpb.SessionLog_STOP,
		summary: e.GetSummary() != nil,
		values:  len(values) > 0 || e.GetSummary() != nil,
	}
}

// purgeFor drops what an event that is about to be stored makes obsolete in other
// tags. It reports whether its own tags also lose their points from its step on.
func (p *purger[S]) purgeFor(e *eventFacts) (own bool) {
	p.noteTime(e)
	switch p.mode {
	case PurgePython:
		return p.purgePython(e)
	case PurgeExact:
		p.purgeExact(e)
	}
	return false
}

func (p *purger[S]) purgePython(e *eventFacts) (own bool) {
	if e.version != "" {
		p.version = parseVersion(e.version)
	}
	switch {
	case p.version >= 2:
		if e.start {
			if p.started {
				p.dropAll(e.step, false)
			}
			p.started = true
		}
	case e.values && e.step < p.lastStep:
		own = true
	}
	if e.values {
		p.lastStep = e.step
	}
	return own
}

func (p *purger[S]) purgeExact(e *eventFacts) {
	if e.start {
		p.session++
		p.restart, p.restarted, p.resumed, p.silent = true, e.step, p.session, true
		p.others = p.startFor(e)
		if e.step < math.MaxInt64 {
			p.dropAll(e.step+1, true)
		}
		return
	}
	if e.summary {
		p.meet(e)
	}
	if p.restart && e.summary && e.step == p.restarted {
		p.restart = false
		p.dropAll(p.restarted, true)
	}
	p.silent = p.silent && !e.summary
}

// purgeOwn drops the points of a tag from a step on.
func (p *purger[S]) purgeOwn(tag string, step int64) {
	if s, ok := p.byTag[tag]; ok {
		p.purged += s.drop(step, math.MaxInt, writers{})
	}
}

// purgeTag drops what a point at the given step makes obsolete in its own tag. It reports whether
// the point itself is to be ignored, because a later session begins with the same float32 as the
// tag did: each start of Lightning writes -1 at step 0. Then the session's next point decides what
// it overtakes.
func (p *purger[S]) purgeTag(s S, step int64, number uint32, isNumber bool) (again bool) {
	switch p.mode {
	case PurgeDataServer:
		p.purged += s.cut(step)
	case PurgeExact:
		at := s.progress()
		if at.ofRun || at.session == p.session && step >= at.least {
			return false
		}
		if at.session != p.session && isNumber && s.beginsWith(step, number, p.alive) {
			p.purged++
			return true
		}
		at.session, at.least = p.session, step
		p.purged += s.drop(step, p.session, p.alive)
	}
	return false
}

// dropAll drops the points from step on of all tags. If exact, those of the session
// of the newest START and later ones stay, those of others that wrote at the same time,
// and what belongs to the run as a whole.
func (p *purger[S]) dropAll(step int64, exact bool) {
	before, others := math.MaxInt, writers{}
	if exact {
		before, others = p.resumed, p.others
	}
	for _, s := range p.byTag {
		if !exact || !s.progress().ofRun {
			p.purged += s.drop(step, before, others)
		}
	}
}
