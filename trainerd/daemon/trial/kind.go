package trial

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/recipe"
)

// kindOf returns the recipe that reads all lines as the trial has read them, by how many
// lines were those of each recipe: one that includes the others, else the one for all
// programs. A line that another recipe reads has another step, as that of its epoch.
func kindOf(lines map[string]int) (kind string) {
	most := -1
	for _, name := range recipe.Names() {
		if n := lines[name]; len(lines) > 0 && n > most && readsAll(name, lines) {
			most, kind = n, name
		}
	}
	return kind
}

// readsAll reports whether a recipe has the lines of all those, as its own or included.
func readsAll(name string, lines map[string]int) bool {
	known := []string{name}
	for i := 0; i < len(known); i++ {
		r, err := recipe.Load(known[i])
		if err != nil {
			return false
		}
		for _, included := range r.Include {
			if !slices.Contains(known, included) {
				known = append(known, included)
			}
		}
	}
	for other := range lines {
		if !slices.Contains(known, other) {
			return false
		}
	}
	return true
}
