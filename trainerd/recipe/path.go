package recipe

import (
	"path/filepath"
	"strings"
)

// PathIn returns the path of a word, such as --out=/runs/a or ../runs, as an absolute one, and
// what is before it. Relative paths below the folder do not count.
func PathIn(word, dir string) (key, name string, ok bool) {
	if k, value, ok := strings.Cut(word, "="); ok && !strings.ContainsAny(k, `/\`) {
		key, word = k+"=", value
	}
	switch {
	case filepath.IsAbs(word):
		return key, word, true
	case word == "..", strings.HasPrefix(filepath.ToSlash(word), "../"):
		return key, filepath.Join(dir, word), true
	}
	return "", "", false
}
