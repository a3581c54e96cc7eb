package config

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// DateParts are columns of dates with the parts of them that are learnt from.
type DateParts map[string][]dataset.DatePart

func (d *DateParts) decodeValue(v any) (want string) {
	const form = `a table of columns, as in { sold = ["weekday", "day", "month", "hour"] }`
	m, ok := v.(map[string]any)
	if !ok {
		return form
	}
	all := make(DateParts, len(m))
	for column, value := range m {
		items, ok := value.([]any)
		if !ok || len(items) == 0 || column == "" {
			return form
		}
		for _, item := range items {
			name, _ := item.(string)
			part := dataset.DatePart(name)
			if part.Size() == 0 || slices.Contains(all[column], part) {
				return form
			}
			all[column] = append(all[column], part)
		}
	}
	*d = all
	return ""
}
