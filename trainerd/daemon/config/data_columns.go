package config

// Units are columns with the units of their numbers.
type Units map[string]string

func (u *Units) decodeValue(v any) (want string) {
	const form = `a table of columns, as in { weight = "kg" }`
	m, ok := v.(map[string]any)
	if !ok {
		return form
	}
	all := make(Units, len(m))
	for column, value := range m {
		text, ok := value.(string)
		if !ok || text == "" || column == "" {
			return form
		}
		all[column] = text
	}
	*u = all
	return ""
}

// NAValues are columns with their words for a missing value.
type NAValues map[string][]string

func (n *NAValues) decodeValue(v any) (want string) {
	const form = `a table of columns with lists of words, as in { age = ["unknown", "-"] }`
	m, ok := v.(map[string]any)
	if !ok {
		return form
	}
	all := make(NAValues, len(m))
	for column, value := range m {
		items, ok := value.([]any)
		if !ok || column == "" {
			return form
		}
		for _, item := range items {
			word, ok := item.(string)
			if !ok {
				return form
			}
			all[column] = append(all[column], word)
		}
	}
	*n = all
	return ""
}
