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
