package serve

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// form is how the columns of a file have what the rows of JSON have in objects and lists: a.b and v.0, and lists of
// words as one text.
type form struct {
	within map[string][]string // the columns whose names begin with a name and a dot
	texts  map[string]bool     // the columns of texts
}

func formOf(schema *dataset.Schema) form {
	f := form{within: make(map[string][]string), texts: make(map[string]bool)}
	if schema == nil {
		return f
	}
	for i := range schema.Features {
		feature := &schema.Features[i]
		f.texts[feature.Name] = feature.Kind == dataset.KindText
		for at, c := range feature.Name {
			if c == '.' {
				f.within[feature.Name[:at]] = append(f.within[feature.Name[:at]], feature.Name)
			}
		}
	}
	return f
}

// row returns a row with its values under the names of columns.
func (f form) row(object map[string]any) (map[string]any, error) {
	flat := make(map[string]any, len(object))
	for name, v := range object {
		if err := f.add(flat, name, v); err != nil {
			return nil, err
		}
	}
	return flat, nil
}

func (f form) add(flat map[string]any, name string, v any) error {
	inner := f.within[name]
	list, isList := v.([]any)
	object := objectOf(v)
	switch {
	case inner != nil && object != nil:
		for key, v := range object {
			if err := f.add(flat, name+"."+key, v); err != nil {
				return err
			}
		}
	case inner != nil && isList:
		for i, v := range list {
			if err := f.add(flat, name+"."+strconv.Itoa(i), v); err != nil {
				return err
			}
		}
	case inner != nil && v == nil:
		for _, column := range inner { // all of it is missing, as in a file
			if err := put(flat, column, nil); err != nil {
				return err
			}
		}
	case isList && f.texts[name]:
		return put(flat, name, textOfWords(list))
	default:
		return put(flat, name, v)
	}
	return nil
}

// textOfWords returns a list of words as the text that a file's column has; any other list as it is.
func textOfWords(list []any) any {
	words := make([]string, len(list))
	for i, v := range list {
		word, ok := v.(string)
		if !ok {
			return list
		}
		words[i] = word
	}
	return table.TextOfWords(words)
}

func put(flat map[string]any, name string, v any) error {
	if _, twice := flat[name]; twice {
		return fmt.Errorf("the input %q is given twice", name)
	}
	flat[name] = v
	return nil
}

// columns returns columns with their values under the names of a file's: those in an object have a list for each of
// its keys, and those of lists or objects have one for each row.
func (f form) columns(object map[string]any) (map[string]any, error) {
	flat := make(map[string]any, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if err := f.addColumn(flat, name, object[name]); err != nil {
			return nil, err
		}
	}
	return flat, nil
}

func (f form) addColumn(flat map[string]any, name string, v any) error {
	rows, isList := v.([]any)
	object := objectOf(v)
	switch {
	case isList && (f.within[name] != nil || f.texts[name]):
		return f.addRows(flat, name, rows)
	case object != nil && f.within[name] != nil:
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if err := f.addColumn(flat, name+"."+key, object[key]); err != nil {
				return err
			}
		}
		return nil
	}
	return put(flat, name, v)
}

// addRows adds the columns of what a list has for each row.
func (f form) addRows(flat map[string]any, name string, rows []any) error {
	columns := make(map[string][]any)
	for i, v := range rows {
		row := make(map[string]any)
		if err := f.add(row, name, v); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		for column, v := range row {
			if len(columns[column]) == i {
				columns[column] = append(columns[column], v)
			}
		}
		for _, column := range f.within[name] {
			if len(columns[column]) > 0 && len(columns[column]) != i+1 {
				return fmt.Errorf("row %d: the column %q is missing; null is a missing value", i, column)
			}
		}
	}
	for column, values := range columns {
		if len(values) < len(rows) {
			continue // not one of the model's, which only some rows have
		}
		if err := put(flat, column, values); err != nil {
			return err
		}
	}
	return nil
}
