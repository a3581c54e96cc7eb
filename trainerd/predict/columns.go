package predict

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// column is a column of raw rows that has an input of its own.
type column struct {
	key     string // of the input
	feature *dataset.Feature
}

// columnsOf returns the columns that have inputs of their own, by the keys of
// those and by their own names, which are the same for most: see
// [model.InputNames].
func columnsOf(s *dataset.Schema, signature *tfpb.SignatureDef) map[string]column {
	if s == nil || !s.HasWords() {
		return nil
	}
	all := make(map[string]column)
	named := s.HasNames()
	for i, key := range model.InputNames(s) {
		c := column{key, &s.Features[i]}
		if signature.GetInputs()[key] == nil {
			continue // another signature than that of the rows
		}
		all[key] = c
		if named {
			all[c.feature.Name] = c
		}
	}
	return all
}

// Input returns the key of the input that a name means: the name is the key itself, or the name of
// the column that the input takes. The feature belongs to the column; it is nil for any other
// input.
func (m *Model) Input(name string) (key string, f *dataset.Feature) {
	if c, ok := m.columns[name]; ok {
		return c.key, c.feature
	}
	return name, nil
}

// renamed returns the columns whose inputs have another name.
func (m *Model) renamed() (all []Renamed) {
	if m.columns == nil {
		return nil
	}
	for i := range m.Schema.Features {
		name := m.Schema.Features[i].Name
		if key, _ := m.Input(name); key != name && name != "" {
			all = append(all, Renamed{name, key})
		}
	}
	return all
}
