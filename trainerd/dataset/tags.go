package dataset

import (
	"maps"
	"slices"
	"strings"
)

// isTags reports whether the values are lists of words, such as drama|comedy, or ["drama",
// "comedy"] of JSON. Commas are not taken for it: names of places have them too.
func (p *Profile) isTags() bool {
	return p.kind() == KindCategory && (p.joined("|") != "" || p.joined(";") != "" || p.isLists())
}

// joined returns a value that is made of several words with a mark between them; "" unless most
// of these words are in several values.
func (p *Profile) joined(mark string) (example string) {
	parts := make(map[string]int)
	for _, word := range slices.Sorted(maps.Keys(p.values)) {
		split := strings.Split(word, mark)
		for _, part := range split {
			parts[strings.TrimSpace(part)]++
		}
		if len(split) > 1 && example == "" {
			example = word
		}
	}
	repeated := 0
	for _, n := range parts {
		if n > 1 {
			repeated++
		}
	}
	if 2*repeated <= len(parts) {
		return "" // texts with commas, as in names of places
	}
	return example
}

// isLists reports whether the values are arrays of texts, in JSON.
func (p *Profile) isLists() bool {
	texts := false
	for value := range p.values {
		if !strings.HasPrefix(value, "[") || !strings.HasSuffix(value, "]") {
			return false
		}
		texts = texts || strings.HasPrefix(value, `["`)
	}
	return texts
}
