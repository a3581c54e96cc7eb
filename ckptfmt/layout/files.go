package layout

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns the names, within their directory, of a V2 checkpoint's files,
// in the order in which they are removed: manifest, meta, index, data. They
// are published in the reverse order. There may be none, or no index among
// them; only regular files count.
func Files(prefix string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return nil, err
	}
	base := filepath.Base(prefix)
	rank := func(name string) int { return PublishRank(strings.TrimPrefix(name, base)) }
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base) && rank(e.Name()) >= 0 && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(b) - rank(a) })
	return names, nil
}
