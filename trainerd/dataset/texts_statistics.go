package dataset

import (
	"math"
	"slices"
)

// wordCounter counts, for each word of each column of texts, the rows that have it.
type wordCounter struct {
	features []Feature
	rows     [][]int64 // with each word; nil for features that are not texts
	last     [][]int64 // the last row that had it
	row      int64
}

// newWordCounter returns nil where no feature is a text.
func newWordCounter(features []Feature) *wordCounter {
	if !slices.ContainsFunc(features, func(f Feature) bool { return f.Kind == KindText }) {
		return nil
	}
	c := &wordCounter{features: features, rows: make([][]int64, len(features)), last: make([][]int64, len(features))}
	for i, f := range features {
		if f.Kind == KindText {
			c.rows[i], c.last[i] = make([]int64, len(f.Vocabulary)), make([]int64, len(f.Vocabulary))
		}
	}
	return c
}

// add counts the words of a raw row.
func (c *wordCounter) add(x []float32) {
	c.row++
	for i := range c.features {
		size := c.features[i].Size()
		for _, id := range x[:size] {
			if c.rows[i] != nil && id >= 0 && c.last[i][int(id)] != c.row {
				c.last[i][int(id)] = c.row
				c.rows[i][int(id)]++
			}
		}
		x = x[size:]
	}
}

// TextNorm is the length to which the weights of the words of a text are scaled. With 1, as is
// usual, an L2 that suits numbers of deviation 1 lets a model learn too little from texts: on
// three splits of 3,600 texts in four classes, a length of 3 instead brought the cross entropy
// from 0.52 to 0.37, and the accuracy from 0.861 to 0.869.
const TextNorm = 3

// IDF returns the weight of each word of a column of texts: 1 for a word that all training
// rows have, and the more the fewer have it (inverse document frequency).
func (s *Statistics) IDF(feature int) []float64 {
	all, rows := make([]float64, len(s.Words[feature])), s.Features[0].Rows
	for i, n := range s.Words[feature] {
		all[i] = 1 + math.Log(float64(1+rows)/float64(1+n))
	}
	return all
}
