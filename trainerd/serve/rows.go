package serve

import (
	"errors"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// rowObjects makes rows of x of objects with the columns' names.
type rowObjects struct{ schema *dataset.Schema }

// newRowObjects returns nil for a model that does not take rows of named columns
// as x.
func newRowObjects(m *predict.Model) *rowObjects {
	if m.Schema == nil || m.Schema.HasWords() || !m.Schema.HasNames() || m.Signature.GetInputs()["x"] == nil {
		return nil
	}
	return &rowObjects{m.Schema}
}

// row returns the values in the order of the features. Columns that the model
// does not know are left out: they may be those of a file with more.
func (r *rowObjects) row(object map[string]any) ([]any, error) {
	values := make([]any, len(r.schema.Features))
	for i := range r.schema.Features {
		column := &r.schema.Features[i]
		name := column.Name
		v, ok := object[name]
		if !ok {
			return nil, fmt.Errorf("the column %q is missing; null is a missing value", name)
		}
		f, err := floatOf(v, textOf(column))
		if err != nil {
			return nil, fmt.Errorf("the column %q: %w", name, err)
		}
		values[i] = number(f)
	}
	return values, nil
}

// ofColumns returns the rows of an object with a list for each column.
func (r *rowObjects) ofColumns(object map[string]any) (rows []any, err error) {
	n := 0
	for i, f := range r.schema.Features {
		list, ok := object[f.Name].([]any)
		if !ok {
			return nil, fmt.Errorf("the column %q is missing, or is no list of its values", f.Name)
		}
		if i > 0 && len(list) != n {
			return nil, fmt.Errorf("the column %q has %d rows, but %q has %d", f.Name, len(list), r.schema.Features[0].Name, n)
		}
		n = len(list)
	}
	for i := range n {
		one := make(map[string]any, len(r.schema.Features))
		for _, f := range r.schema.Features {
			one[f.Name] = object[f.Name].([]any)[i]
		}
		row, err := r.row(one)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// number is a value of a row as tensorOf takes it.
func number(f float64) any {
	switch {
	case math.IsNaN(f):
		return nil
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return jsonNumber(f)
}

// textOf returns what reads a number or a date that is given as text, as a file
// has it; nil for a column of something else.
func textOf(f *dataset.Feature) func(string) (float64, error) {
	if f == nil || f.Kind != dataset.KindDate && f.Kind != dataset.KindNumber {
		return nil
	}
	one := dataset.Schema{Features: []dataset.Feature{*f}}
	return func(text string) (float64, error) {
		v, reason, hint := one.Parse(nil, 0, text)
		if reason != "" {
			return 0, errors.New(reason + "; " + hint)
		}
		return float64(v), nil
	}
}
