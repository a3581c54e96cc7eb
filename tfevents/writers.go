package tfevents

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Several programs may write to one directory at the same time. A session that goes back resumes
// one that has ended, and overtakes none of the others.

// lifetime says when a file was begun, according to its version event, and when its first and last
// event were written.
type lifetime struct {
	begun, first, last float64

	writer    string // as far as the name tells; see [writerOf]
	successor int    // the file whose writer has resumed this one, 0 if none has
	started   bool   // it has a START
}

// meets reports whether two files were written to at the same time.
func (f *lifetime) meets(other *lifetime) bool {
	return f.first < other.last && other.first < f.last
}

// writers are the writers of earlier files which the current file does not resume.
type writers struct {
	alive []bool // by file
	some  bool   // there are any
	files []lifetime
	own   bool // the current file is the successor of some file, so the files that others have resumed do not concern it
	start bool // this is about a START
}

// spare reports whether a file's points of a tag belong to another writer: one that was alive, or
// whose successor was. If all writers were restarted, so that it is unclear which resumed which, a successor
// is a writer that has overtaken the file's points of the tag. wrote reports whether a file has
// points of the tag.
func (w writers) spare(file int, wrote func(file int) bool) bool {
	for file < len(w.alive) && !w.alive[file] {
		successor := w.files[file].successor
		if successor == 0 || !(w.own || w.start && w.files[successor].started || wrote(successor)) {
			return false
		}
		file = successor
	}
	return file < len(w.alive)
}

// startFile begins a new session: no writer appends to a file that it did not
// begin. A writer whose disk has failed after its START continues in the next file.
func (p *purger[S]) startFile(name string) {
	p.session++
	p.restart = p.restart && p.silent
	p.files = append(p.files, lifetime{begun: math.NaN(), first: math.NaN(), last: math.NaN(), writer: writerOf(name)})
	p.met, p.alive = false, writers{}
}

// file returns the number of the current file.
func (p *purger[S]) file() int { return len(p.files) - 1 }

// noteTime records the time of an event in the current file. The version event says only when the
// file was begun.
func (p *purger[S]) noteTime(e *eventFacts) {
	f := &p.files[p.file()]
	if math.IsNaN(f.first) || e.time < f.first {
		f.first = e.time
	}
	if e.version != "" {
		f.begun = e.time
	} else if math.IsNaN(f.last) || e.time > f.last {
		f.last = e.time
	}
}

// aliveAt returns a time at which the writer of the current file was alive, according to an event. A time
// of 0 means that the event has none. An event that is older than its file is a repetition: the writer
// writes again what a disk may have lost with the previous file.
func (p *purger[S]) aliveAt(e *eventFacts) (at float64, ok bool) {
	at = e.time
	if begun := p.files[p.file()].begun; at < begun {
		at = begun
	}
	return at, e.time != 0 && !math.IsNaN(at) && !math.IsInf(at, 0)
}

// meet determines the other writers at the first summary of the current file: its time shows which
// of the earlier files the writer resumes, if any. So if another writer ends later, a tag that the
// current file then begins overtakes none of that writer's points. A START before the first summary
// is judged by its own time.
func (p *purger[S]) meet(e *eventFacts) {
	if p.met {
		return
	}
	at, ok := p.aliveAt(e)
	if !ok {
		return
	}
	p.met = e.summary
	w := writers{alive: p.writingAt(at), files: p.files, own: p.alive.own}
	others := p.otherWorkers()
	for i, alive := range w.alive {
		f := &p.files[i]
		switch {
		case alive || f.successor != 0 && f.successor != p.file():
		case others[f.writer]: // it may be resumed later
			w.alive[i] = true
		default:
			f.successor, w.own = p.file(), true
		}
	}
	w.some = slices.Contains(w.alive, true)
	p.alive = w
}

// otherWorkers returns the writers that were alive at the same time as an earlier writer with the
// current one's name.
func (p *purger[S]) otherWorkers() map[string]bool {
	writer, before := p.files[p.file()].writer, p.files[:p.file()]
	var same []*lifetime
	for i := range before {
		if before[i].writer == writer {
			same = append(same, &before[i])
		}
	}
	others := make(map[string]bool)
	for i := range before {
		if f := &before[i]; f.writer != writer && !others[f.writer] && slices.ContainsFunc(same, f.meets) {
			others[f.writer] = true
		}
	}
	return others
}

// writingAt returns, by file, which earlier files had a writer that was alive at a time, provided
// that their common clock is right: the file has events from before that time and after it. Names
// have whole seconds, so a file may sort before one that was begun earlier.
func (p *purger[S]) writingAt(at float64) []bool {
	alive := make([]bool, p.file())
	for i, f := range p.files[:p.file()] {
		alive[i] = math.Floor(f.first) <= at && at < f.last
	}
	return alive
}

// startFor records a START, and returns the writers that it does not concern.
func (p *purger[S]) startFor(e *eventFacts) writers {
	p.files[p.file()].started = true
	p.meet(e)
	if _, ok := p.aliveAt(e); !ok {
		return writers{}
	}
	w := p.alive
	w.start = true
	return w
}

// pidAndNumber matches the process ID and the writer's number in a file name.
var pidAndNumber = lazyregexp.New(`\.[0-9]+\.[0-9]+(\D|$)`)

// writerOf returns the part of a file's name that identifies its writer across restarts: the host
// and the suffix.
func writerOf(name string) string {
	rest, ok := strings.CutPrefix(path.Base(name), filePrefix)
	if !ok {
		return ""
	}
	_, rest, _ = strings.Cut(rest, ".")
	if all := pidAndNumber().FindAllStringSubmatchIndex(rest, -1); all != nil {
		last := all[len(all)-1]
		return rest[:last[0]] + rest[last[2]:]
	}
	return rest
}
