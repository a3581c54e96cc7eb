package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// vocabulary collects the words of a column. If they are known, others are not
// added.
type vocabulary struct {
	most  int // words
	known bool
	index map[string]int
	words []string
	order []int // of the words, once they are sorted
}

func newVocabulary(known []string, most int) *vocabulary {
	v := &vocabulary{most: max(most, len(known)), index: make(map[string]int)}
	for _, w := range known {
		v.add(w)
	}
	v.known = known != nil
	return v
}

// add returns the number of a word: -1 for one that is not known, when they are
// known.
func (v *vocabulary) add(word string) (n float32, reason, hint string) {
	if at, ok := v.index[word]; ok {
		return float32(at), "", ""
	}
	if v.known {
		return -1, "", ""
	}
	if len(v.words) == v.most {
		return 0, fmt.Sprintf("is the word number %d of a category", v.most+1), "leave the column out: add it to data.drop"
	}
	word = strings.Clone(word) // not the row it is part of
	v.index[word] = len(v.words)
	v.words = append(v.words, word)
	return float32(len(v.words) - 1), "", ""
}

func (v *vocabulary) addLabel(word string) (n int64, reason, hint string) {
	if word == "" {
		return 0, "the label is empty", `fill it in, remove the row, or set data.missing = "fill" to leave such rows out`
	}
	at, reason, hint := v.add(word)
	if reason == "" && at < 0 {
		return 0, fmt.Sprintf("the label %s is not among those of data.file", clip(word)), "correct it, or remove the row"
	}
	if reason != "" {
		hint = "check that data.label is the right column; for numbers to predict, set model.family = \"linear\""
	}
	return int64(at), reason, hint
}

// sort returns the words in order, numbers by their value, and makes order say
// where each has gone.
func (v *vocabulary) sort() []string {
	sorted := slices.Clone(v.words)
	if !v.known {
		numbers := !slices.ContainsFunc(sorted, func(w string) bool { return !table.IsNumber(w) })
		slices.SortFunc(sorted, func(a, b string) int {
			if numbers {
				x, _ := strconv.ParseFloat(a, 64)
				y, _ := strconv.ParseFloat(b, 64)
				return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
			}
			return strings.Compare(a, b)
		})
	}
	v.order = make([]int, len(sorted))
	for at, w := range sorted {
		v.order[v.index[w]] = at
	}
	return sorted
}
