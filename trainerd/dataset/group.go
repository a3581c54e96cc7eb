package dataset

import (
	"fmt"
	"strings"
)

// grouping numbers the groups of rows as they are read, by the names in a column.
type grouping struct {
	index map[string]uint32
	rows  []uint32 // the group of each row
	sizes []int
	names int64 // bytes
}

func newGrouping() *grouping { return &grouping{index: make(map[string]uint32)} }

// add notes the group of the next row. One without a name is a group by itself.
func (g *grouping) add(name string) {
	id, known := g.index[name]
	if !known || IsMissing(name) {
		id = uint32(len(g.sizes))
		g.sizes = append(g.sizes, 0)
		g.index[strings.Clone(name)] = id
		g.names += int64(len(name))
	}
	g.sizes[id]++
	g.rows = append(g.rows, id)
}

// bytes returns about how much memory the groups take.
func (g *grouping) bytes() int64 {
	const group = 64 // its size, number, and place in the index
	return 4*int64(len(g.rows)) + group*int64(len(g.sizes)) + g.names
}

// split divides an order of all rows so that each group is in one part. Groups are
// taken into the test part from the end of the order on, as long as they bring it
// nearer to the number of rows that is wanted.
func (g *grouping) split(order []uint32, tests int) (train, test []uint32, e *Error) {
	if tests == 0 {
		return order, nil, nil
	}
	if len(g.sizes) < 2 {
		return nil, nil, &Error{Reason: "all rows are of one group, so none is left for the test part", Hint: "remove data.group, or name another column"}
	}
	taken, picked := g.pick(order, tests)
	train, test = make([]uint32, 0, len(order)-taken), make([]uint32, 0, taken)
	for _, row := range order {
		if picked[g.rows[row]] {
			test = append(test, row)
		} else {
			train = append(train, row)
		}
	}
	if len(train) == 0 {
		return nil, nil, &Error{Reason: fmt.Sprintf("the test part has all %d groups", len(g.sizes)), Hint: "lower data.test_rows or data.test_fraction"}
	}
	return train, test, nil
}

// of returns the groups of some rows.
func (g *grouping) of(rows []uint32) []uint32 {
	groups := make([]uint32, len(rows))
	for i, row := range rows {
		groups[i] = g.rows[row]
	}
	return groups
}

// FirstGroups numbers the groups of up to n training rows, the first ones that
// [Dataset.Batch] returns; nil without a column of groups.
func (d *Dataset) FirstGroups(n int) []uint32 {
	if d.trainGroups == nil {
		return nil
	}
	order := make([]uint32, d.TrainRows)
	arrange(order, d.opts.Shuffle, d.opts.Seed, 0)
	groups := make([]uint32, min(n, len(order)))
	for i := range groups {
		groups[i] = d.trainGroups[order[i]]
	}
	return groups
}

// pick returns the groups of the test part, and how many rows these have.
func (g *grouping) pick(order []uint32, tests int) (taken int, picked []bool) {
	seen := make([]bool, len(g.sizes))
	picked = make([]bool, len(g.sizes))
	smallest := g.rows[order[len(order)-1]]
	for i := len(order) - 1; i >= 0 && taken < tests; i-- {
		id := g.rows[order[i]]
		if seen[id] {
			continue
		}
		seen[id] = true
		if size := g.sizes[id]; size <= 2*(tests-taken) {
			picked[id] = true
			taken += size
		}
		if g.sizes[id] < g.sizes[smallest] {
			smallest = id
		}
	}
	if taken == 0 {
		picked[smallest] = true
		taken = g.sizes[smallest]
	}
	return taken, picked
}

// groupNames are words for whom or what rows are about, where a model is to be used
// for others than those that it has seen.
var groupNames = []string{"patient", "subject", "participant", "person", "user", "customer", "client", "member", "student", "speaker", "author",
	"respondent", "volunteer", "family", "household", "animal"}

// groupIDs end the names of columns that say which one it is.
var groupIDs = []string{"", "id", "no", "nr", "number", "code", "key", "uuid", "name"}

// groupsOf returns how many groups a column must have to be taken for that of whom
// its rows are about, by its name, as in patient, PatientID or subject_no, or "id"
// itself; 0 for other names. A few groups by names that may mean something else are
// rather a feature: the identification with a party, or the group of a treatment.
func (p *Profile) groupsOf() int {
	const few, many = 5, 20
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune(" _-.", r) {
			return -1
		}
		return r
	}, p.Name))
	switch name {
	case "id", "groupid":
		return few
	case "pid", "group":
		return many
	}
	for _, word := range groupNames {
		for _, end := range groupIDs {
			if name == word+end {
				return few
			}
		}
	}
	return 0
}

// findGroup returns the column by which the rows are to be split, -1 for none: one
// that names whom each row is about, most of them several times.
func (s *Survey) findGroup(p *Plan) int {
	for i, c := range s.Columns {
		words := c.kind() == KindCategory || c.kind() == KindNumber && c.numbers == c.integers
		fewest := c.groupsOf()
		if i != p.Label && words && fewest > 0 && !c.Many && c.Distinct >= fewest && 2*c.Distinct <= c.present() {
			return i
		}
	}
	return -1
}

// GroupBy splits the rows by a column, and returns its name.
func (p *Plan) GroupBy(column int) string {
	p.Ungroup()
	u := &p.Uses[column]
	u.Drop, u.Group, u.Rule = true, true, "group: all rows of one train, or all test"
	return u.Name
}

// Leave leaves a column out.
func (p *Plan) Leave(column int) {
	u := &p.Uses[column]
	u.Drop, u.Weight, u.Group, u.Rule = true, false, false, "left out: as --drop says"
}

// Ungroup no longer splits the rows by a column, which is then left out.
func (p *Plan) Ungroup() {
	for i := range p.Uses {
		if u := &p.Uses[i]; u.Group {
			u.Group, u.Rule = false, "left out: identifies whom the row is about"
		}
	}
}

// Group returns the name of the column by which the rows are split, "" for none.
func (p *Plan) Group() string {
	for _, u := range p.Uses {
		if u.Group {
			return u.Name
		}
	}
	return ""
}
