package tfevents

import (
	"errors"
	"iter"
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// parts divides the run's files into groups that are read one after the other. The files of a group
// are read together, ordered by time: they were written at the same time and share tags.
func (m *merger) parts() (parts [][]int) {
	m.together = slices.ContainsFunc(m.data.all, func(s *Series) bool { return s.points.isMixed() })
	last := math.Inf(-1) // time of the events of the files of the newest part
	for i, f := range m.data.rule.files {
		if n := len(parts) - 1; m.together && n >= 0 && !(f.first >= last) { // or without an event
			parts[n] = append(parts[n], i)
		} else {
			parts = append(parts, []int{i})
		}
		if f.last > last {
			last = f.last
		}
	}
	return parts
}

// source is a file whose events are read together with those of others.
type source struct {
	next  func() (place, *tfpb.Event, bool)
	at    place
	e     *tfpb.Event // the first that was not yielded yet
	until float64     // the latest time up to it
}

// advance reads the next event and reports whether there is one. Versions go first.
func (s *source) advance() (ok bool) {
	if s.at, s.e, ok = s.next(); ok && s.e.GetFileVersion() == "" && s.e.GetWallTime() > s.until {
		s.until = s.e.GetWallTime()
	}
	return ok
}

// eventsInOrder returns the events of the files with the given numbers: a single file in its own
// order, several merged by time. Damage in them has been reported already.
func (x *RunData) eventsInOrder(files []int) iter.Seq2[place, *tfpb.Event] {
	if len(files) == 1 {
		return x.eventsOf(files[0])
	}
	return func(yield func(place, *tfpb.Event) bool) {
		var sources []*source
		for _, file := range files {
			next, stop := iter.Pull2(x.eventsOf(file))
			defer stop()
			if s := (&source{next: next, until: math.Inf(-1)}); s.advance() {
				sources = append(sources, s)
			}
		}
		for len(sources) > 0 {
			first := 0
			for i, s := range sources {
				if s.until < sources[first].until {
					first = i
				}
			}
			s := sources[first]
			if !yield(s.at, s.e) {
				return
			}
			if !s.advance() {
				sources = slices.Delete(sources, first, first+1)
			}
		}
	}
}

var errEnough = errors.New("no more is wanted")

// eventsOf returns the events of a file, without those that it shares with another file.
func (x *RunData) eventsOf(file int) iter.Seq2[place, *tfpb.Event] {
	f := &x.files[file]
	return func(yield func(place, *tfpb.Event) bool) {
		in, err := x.fsys.Open(f.name)
		if err != nil {
			return
		}
		defer in.Close()
		// Damage was recorded by the first reading.
		_, _, _ = x.o.eachRecordFrom(in, f.name, f.begin, func(data []byte, at int64) error {
			e, err := decodeEvent(f.name, at, data)
			if err != nil {
				return err
			}
			if !yield(place{file, at}, e) {
				return errEnough
			}
			return nil
		})
	}
}
