package tfevents

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Several programs may write to one directory at the same time. A session that goes back resumes one of
// those that have ended, and overtakes none of the others.

// lifetime says when a file was begun, by its version, and when its first and last event were written.
type lifetime struct {
	begun, first, last float64

	writer  string // as far as the name tells; see [writerOf]
	heir    int    // the file whose writer has resumed this one, 0 if none has
	started bool   // it has a START
}

// meets reports whether two files were written to at the same time.
func (f *lifetime) meets(other *lifetime) bool {
	return f.first < other.last && other.first < f.last
}

// writers are those of earlier files whom the current one does not resume.
type writers struct {
	alive []bool // by file
	some  bool   // there are any
	files []lifetime
	own   bool // it is the heir of some file, so what others have resumed is no concern of it
	start bool // they are asked for because of a START
}

// spare reports whether the points that a file has of a tag are those of another writer: one who was alive, or
// whose heir was. If it is open who has resumed whom, since all were begun again, an heir is one who has
// overtaken what the file says of the tag. wrote reports whether there are points of the tag in a file.
func (w writers) spare(file int, wrote func(file int) bool) bool {
	for file < len(w.alive) && !w.alive[file] {
		heir := w.files[file].heir
		if heir == 0 || !(w.own || w.start && w.files[heir].started || wrote(heir)) {
			return false
		}
		file = heir
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

// noteTime takes note of an event in the current file. The version says only when the file
// was begun.
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

// aliveAt returns a time at which the writer of the current file was alive, as an event tells. Times of 0
// are those of events that have none. What is older than the file its writer repeats, since a disk may
// have lost it with the file before.
func (p *purger[S]) aliveAt(e *eventFacts) (at float64, ok bool) {
	at = e.time
	if begun := p.files[p.file()].begun; at < begun {
		at = begun
	}
	return at, e.time != 0 && !math.IsNaN(at) && !math.IsInf(at, 0)
}

// meet takes note of the other writers when the current file has its first summary: that says
// which of them its writer resumes, if any. What it writes first of some tag later, when one of
// the others has ended, overtakes nothing of that. A START before it says so for itself.
func (p *purger[S]) meet(e *eventFacts) {
	at, ok := p.aliveAt(e)
	if p.met || !ok {
		return
	}
	p.met = e.summary
	w := writers{alive: p.writingAt(at), files: p.files, own: p.alive.own}
	others := p.otherWorkers()
	for i, alive := range w.alive {
		f := &p.files[i]
		switch {
		case alive || f.heir != 0 && f.heir != p.file():
		case others[f.writer]: // who may be resumed later
			w.alive[i] = true
		default:
			f.heir, w.own = p.file(), true
		}
	}
	w.some = slices.Contains(w.alive, true)
	p.alive = w
}

// otherWorkers returns who was alive at the same time as somebody before who is named like the current writer.
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

// writingAt returns, by file, which earlier ones had a writer who was alive at a time, as
// far as the clock that they share is right: there are events from before it and
// after it. Names tell seconds only: a file may sort before one that was begun before it.
func (p *purger[S]) writingAt(at float64) []bool {
	alive := make([]bool, p.file())
	for i, f := range p.files[:p.file()] {
		alive[i] = math.Floor(f.first) <= at && at < f.last
	}
	return alive
}

// startFor takes note of a START, and returns the writers whom it does not concern.
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

// pidAndNumber is what names have of a process.
var pidAndNumber = lazyregexp.New(`\.[0-9]+\.[0-9]+(\D|$)`)

// writerOf returns what the name of a file says of who writes it, whenever that is started: the host and the suffix.
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
