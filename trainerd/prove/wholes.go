package prove

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// manyWholes is from how many whole numbers on a list is one value: the state of a
// random generator, whose numbers say nothing by how far they are apart.
const manyWholes = 100

// joinWholes makes one leaf of each long list of whole numbers.
func joinWholes(leaves map[string]any) {
	lists := map[string][]string{}
	for name, v := range leaves {
		f, isNumber := v.(float64)
		if _, err := strconv.Atoi(path.Base(name)); err == nil && isNumber && f == math.Trunc(f) {
			lists[path.Dir(name)] = append(lists[path.Dir(name)], name)
		}
	}
	for list, names := range lists {
		if len(names) < manyWholes {
			continue
		}
		slices.Sort(names) // in any order that is the same in both runs
		var text strings.Builder
		for _, name := range names {
			fmt.Fprintf(&text, "%v ", leaves[name])
			delete(leaves, name)
		}
		leaves[list] = text.String()
	}
}
