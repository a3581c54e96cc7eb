package config

import "strconv"

// ColumnName is a column of the data in the config: its name, or its index from 0,
// which serves as the name in a file without a header; "" for none.
type ColumnName string

func (c *ColumnName) decodeValue(v any) (want string) {
	switch v := v.(type) {
	case string:
		*c = ColumnName(v)
	case int64:
		*c = ColumnName(strconv.FormatInt(v, 10))
	default:
		return "a column's name or index"
	}
	return ""
}

// ClassWeights are the weights of classes in the config: a table, or "balanced".
type ClassWeights struct {
	Balanced bool
	Each     map[string]float64
}

func (c *ClassWeights) decodeValue(v any) (want string) {
	const form = `"balanced", or a table of classes, as in { yes = 5, no = 1 }`
	switch v := v.(type) {
	case string:
		*c = ClassWeights{Balanced: v == balanced}
		if v != balanced && v != "" {
			return form
		}
	case map[string]any:
		*c = ClassWeights{Each: make(map[string]float64, len(v))}
		for class, value := range v {
			w, ok := NumberOf(value)
			if !ok || w < 0 || class == "" {
				return form
			}
			c.Each[class] = w
		}
	default:
		return form
	}
	return ""
}

// balanced is the value of data.class_weights by which classes weigh the same.
const balanced = "balanced"

func (c ClassWeights) isZero() bool { return !c.Balanced && len(c.Each) == 0 }

// tomlValue returns c as the config has it.
func (c ClassWeights) tomlValue() (string, error) {
	if c.Balanced {
		return tomlString(balanced), nil
	}
	return inlineTable(c.Each)
}
