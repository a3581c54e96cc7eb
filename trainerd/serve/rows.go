package serve

import (
	"errors"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// rowObjects makes rows of x of objects with the columns' names.
type rowObjects struct {
	schema *dataset.Schema
	names  []string
}

// newRowObjects returns nil for a model that does not take rows of named columns
// as x.
func newRowObjects(m *predict.Model) *rowObjects {
	if m.Schema == nil || m.Schema.HasWords() || !m.Schema.HasNames() || m.Signature.GetInputs()["x"] == nil {
		return nil
	}
	return &rowObjects{m.Schema, model.InputNames(m.Schema)}
}

// row returns the values in the order of the features. Columns that the model
// does not know are left out: they may be those of a file with more.
func (r *rowObjects) row(object map[string]any) ([]any, error) {
	values := make([]any, len(r.names))
	for i, name := range r.names {
		v, ok := object[name]
		if !ok {
			return nil, fmt.Errorf("the column %q is missing; null is a missing value", name)
		}
		f, err := floatOf(v, dates(&r.schema.Features[i]))
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

// dateOf returns what reads dates for an input of a model that has one for each
// column; nil for an input that is no date.
func dateOf(m *predict.Model, input string) func(string) (float64, error) {
	if m.Schema == nil || !m.Schema.HasWords() {
		return nil
	}
	for i, name := range model.InputNames(m.Schema) {
		if name == input {
			return dates(&m.Schema.Features[i])
		}
	}
	return nil
}

// dates returns what reads the dates of a column, nil for one of something else.
func dates(f *dataset.Feature) func(string) (float64, error) {
	if f.Kind != dataset.KindDate {
		return nil
	}
	one := dataset.Schema{Features: []dataset.Feature{*f}}
	return func(text string) (float64, error) {
		days, reason, hint := one.Parse(one.Vocabularies(), 0, text)
		if reason != "" {
			return 0, errors.New(reason + "; " + hint)
		}
		return float64(days), nil
	}
}
