package found

import (
	"cmp"
	"errors"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// The number in a name is not always a step of the whole training: steps may begin again with each
// epoch (epoch1/step20.pt), and a few names may take turns (slot_0.pt, slot_1.pt). Such checkpoints
// are identified by all numbers in their names, and ordered by the time at which they were written.

// outerNumber matches a number in a name that counts something with its own steps, such as an
// epoch.
var outerNumber = lazyregexp.New(`(?i)(?:^|[^a-z])(?:e|ep(?:och)?s?|fold|stage|phase|round|cycle|task)[-_=]?(\d+)`)

// numbersIn returns the numbers in a name that may distinguish checkpoints: those in its folders,
// except the folders of one start of the program, and those up to its step.
func numbersIn(name string) (all []string) {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if !runFolder().MatchString(part) {
			all = append(all, countsIn(part)...)
		}
	}
	base := path.Base(name)
	head, _ := stepEnd(base)
	all = append(all, countsIn(head)...)
	for _, m := range outerNumber().FindAllStringSubmatch(base[len(head):], -1) {
		all = append(all, m[1])
	}
	return all
}

// howReused returns the way in which the numbers in the name of a checkpoint are reused.
func howReused(name string) string {
	if len(numbersIn(name)) > 1 {
		return manifest.NumbersBegin
	}
	return manifest.NumbersTurn
}

// numbers returns the way in which the numbers in its name are reused, or "" if they are not.
func (c *Checkpoint) numbers() string {
	if !c.reused || len(numbersIn(c.files[0])) == 0 {
		return ""
	}
	return howReused(c.files[0])
}

// Reuses reports whether the program reuses the numbers in the names of its checkpoints.
func (s *Store) Reuses() bool { return s.reused }

// countsIn returns the numbers in a part of a name that may count something.
func countsIn(part string) (all []string) {
	for at := range lastCounts(part) {
		all = append(all, part[at[0]:at[1]])
	}
	slices.Reverse(all)
	return all
}

// place is a step and the numbers that precede it in a name.
type place struct {
	run   string
	outer []int64
	step  int64
}

// placeOf returns the place of a name with a step and numbers before it.
func placeOf(name string) (p place, ok bool) {
	base := path.Base(name)
	head, digits := stepEnd(base)
	stepAt := len(name) - len(base) + len(head) - len(digits)
	if digits == "" || !strings.ContainsAny(name[:stepAt]+base[len(head):], "0123456789") {
		return place{}, false
	}
	for _, m := range outerNumber().FindAllStringSubmatchIndex(name, -1) {
		if m[2] == stepAt {
			continue
		}
		n, err := strconv.ParseInt(name[m[2]:m[3]], 10, 64)
		if err != nil {
			return place{}, false
		}
		p.outer = append(p.outer, n)
	}
	p.run, p.step = runOf(name), stepOfName(base)
	return p, len(p.outer) > 0
}

// beginAgain reports whether the steps in some names begin again: a later epoch does not have
// higher steps.
func beginAgain(names []string) bool {
	var all []place
	for _, name := range names {
		if p, ok := placeOf(name); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(len(a.outer), len(b.outer)), slices.Compare(a.outer, b.outer), cmp.Compare(a.step, b.step))
	})
	highest, before := int64(math.MinInt64), int64(math.MinInt64) // so far, and of earlier epochs
	for i, p := range all {
		if i > 0 {
			last := all[i-1]
			switch {
			case last.run != p.run || len(last.outer) != len(p.outer):
				highest, before = math.MinInt64, math.MinInt64
			case slices.Compare(last.outer, p.outer) != 0:
				before = highest
			}
		}
		if p.step <= before {
			return true
		}
		highest = max(highest, p.step)
	}
	return false
}

// learnTurns finds out whether names take turns, or one is always the same: the program has got
// further, but the number has become lower, or stayed the same. Checkpoints that do not count show
// that, too.
func (s *Store) learnTurns() bool {
	if s.reused {
		return false
	}
	all := slices.Clone(s.known)
	for _, b := range s.refused {
		all = append(all, b.Checkpoint)
	}
	slices.SortFunc(all, byStep)
	const anyStart = -1
	first := map[int]*Checkpoint{} // of those with higher numbers, by start
	for i := len(all) - 1; i >= 0; i-- {
		c := &all[i]
		starts := []int{anyStart, c.first.Attempt}
		fell := slices.ContainsFunc(starts, func(start int) bool { return first[start] != nil && fellBack(first[start], c) })
		if fell || c.again && c.Step != NoStep && !c.NamesStep() {
			s.tellByTime()
			return true
		}
		for _, start := range starts {
			if c.Reported() > 0 && (first[start] == nil || c.Written().Before(first[start].Written())) {
				first[start] = c
			}
		}
	}
	return false
}

// fellBack reports whether the program has written b after a, with more steps reported but a lower
// number. Another start may just count its reports in another way: then the number of a must not be
// a step either.
func fellBack(a, b *Checkpoint) bool {
	sameStart := a.first.Attempt > 0 && a.first.Attempt == b.first.Attempt
	isLater := NoStep < b.Step && b.Step < a.Step && b.Written().After(a.Written()) && a.Reported() < b.Reported()
	return isLater && !b.NamesStep() && (sameStart || !a.NamesStep())
}

// tellByTime makes all numbers in their names identify checkpoints, and name their records, from
// now on. Files that were wrongly treated as one checkpoint are verified again.
func (s *Store) tellByTime() {
	s.reused = true
	records := map[key]*manifest.Record{}
	for _, r := range s.records {
		if r == nil || len(r.Parts) == 0 {
			continue
		}
		if k, ok := oneKey(r.Parts); ok {
			records[k] = s.renamed(r)
		}
		s.unname(r)
	}
	s.records = records
	known := s.known[:0]
	for _, c := range s.known {
		if s.retell(&c) {
			c.record = s.records[c.key()]
			known = append(known, c)
		}
	}
	s.known = known
	slices.SortFunc(s.known, byStep)
	seen, refused := s.seen, s.refused
	s.seen, s.refused, s.withheld = map[key]Checkpoint{}, map[key]Rejected{}, map[key]bool{}
	for _, c := range seen {
		if s.retell(&c) {
			s.seen[c.key()] = c
		}
	}
	for _, b := range refused {
		if s.retell(&b.Checkpoint) {
			s.refused[b.key()] = b
		}
	}
}

// retell gives a checkpoint its new key, unless its files have several.
func (s *Store) retell(c *Checkpoint) bool {
	k, ok := oneKey(c.files)
	if c.first.Step == 0 && c.record == nil && c.Step != NoStep && c.NamesStep() {
		c.first.Step = c.Step
	}
	c.reused, c.Step = true, k.step
	return ok
}

// oneKey returns the key of files if it is the same for all.
func oneKey(files []string) (k key, ok bool) {
	k = keyOf(files[0], true)
	return k, !slices.ContainsFunc(files, func(name string) bool { return keyOf(name, true) != k })
}

// renamed writes a record under its name without a step.
func (s *Store) renamed(r *manifest.Record) *manifest.Record {
	if r.Step == NoStep {
		return r
	}
	now := *r
	now.Step, now.Numbers, now.Reported = NoStep, howReused(r.Parts[0]), cmp.Or(r.Reported, r.Step)
	measured := metricsOf(r)
	for name, m := range measured {
		m.Step = NoStep
		measured[name] = m
	}
	now.Metrics, now.Measured = measured.InManifest()
	if s.readOnly {
		return &now
	}
	if err := now.Write(s.disk, s.root.Name()); err != nil {
		s.unrecorded = append(s.unrecorded, err)
	}
	return &now
}

// unname removes the record of a checkpoint that was named by its step.
func (s *Store) unname(r *manifest.Record) {
	if r == nil || r.Step == NoStep || s.readOnly {
		return
	}
	name := filepath.Join(s.root.Name(), manifest.RecordName(r.Name, r.Step))
	if err := errors.Join(atomicfile.RemoveIfExists(s.disk, name), s.disk.SyncDir(filepath.Dir(name))); err != nil {
		s.unrecorded = append(s.unrecorded, err)
	}
}

// current returns the present state of checkpoints.
func (s *Store) current(all []Checkpoint) (now []Checkpoint) {
	for _, c := range all {
		for _, k := range s.known {
			if slices.Equal(k.files, c.files) {
				now = append(now, k)
			}
		}
	}
	return now
}
