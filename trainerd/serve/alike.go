package serve

import (
	"fmt"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// decodeFor decodes a part of a request to a model. The names and texts for a model of a table
// become what they are in a file: it has learned that what looks alike is alike.
func decodeFor(m *predict.Model, raw []byte) (v any, err error) {
	if err := decode(raw, &v); err != nil || m.Schema == nil {
		return v, err
	}
	return asInTable(v)
}

// asInTable returns a value with all names of columns and all texts as a table has them.
func asInTable(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return table.Compose(v), nil
	case []any:
		for i, one := range v {
			var err error
			if v[i], err = asInTable(one); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		named := make(map[string]any, len(v))
		for given, one := range v {
			name := table.Name(given)
			if _, twice := named[name]; twice {
				return nil, fmt.Errorf("the input %q is given twice", name)
			}
			value, err := asInTable(one)
			if err != nil {
				return nil, err
			}
			named[name] = value
		}
		return named, nil
	}
	return v, nil
}
