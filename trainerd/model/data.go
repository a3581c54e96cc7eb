package model

import (
	"math"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// Data describes the examples of a model. The model then takes raw rows: it
// scales them, fills in missing values and looks up words itself, using the
// statistics of the training rows, which are untrained variables, or constants:
//
//	normalization/mean, normalization/variance   [inputs], for "standard"; a
//	                    missing number counts as the mean
//	normalization/mean, normalization/minimum, normalization/range   for "minmax"
//	imputation/mean     the numbers that stand for missing ones, if there are
//	                    any in the training rows and nothing is normalised
//	label/mean, label/variance   scalars, of a number to predict: the label is
//	                    learnt with mean 0 and deviation 1
//	label/median, label/deviation   the same for model.loss = "huber_loss"
//	tfidf/NAME          [words], the weights of the words of a column of texts
//	embedding/NAME      [words, size], trained, of a category of many words
//
// Variables of statistics have the shape of x, or of its columns of numbers.
type Data struct {
	Schema     dataset.Schema
	Statistics *dataset.Statistics // nil if nothing here needs them
	Normalize  dataset.Normalize
	Scale      float64 // divides all numbers if nothing is normalised; 0 means 1
	// LabelSpread is that of the labels, for the loss huber_loss.
	LabelSpread dataset.Spread
	// Weighted says that each example has a weight.
	Weighted bool
	// Constant puts the statistics into the graph as constants, and does not
	// scale the label: for checkpoints without such variables.
	Constant bool
}

// NeedsStatistics reports whether a model needs statistics of the
// training rows.
func (d *Data) NeedsStatistics(c Config) bool {
	if c.Family == "embedding_bag" {
		return false
	}
	return d.Normalize != dataset.NormalizeNone || c.IsRegression() || d.Schema.MayMiss()
}

// statisticScopes begin the names of variables that are statistics.
var statisticScopes = []string{"normalization", "imputation", "label", "tfidf"}

// StatisticVariables returns the names of the variables of a model that are
// statistics of its training rows.
func StatisticVariables(meta *tfpb.MetaGraphDef) ([]string, error) {
	vars, err := graph.Collections{Meta: meta}.Variables(graph.GlobalVariables)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range vars {
		name := strings.TrimSuffix(v.GetVariableName(), ":0")
		if scope, _, _ := strings.Cut(name, "/"); slices.Contains(statisticScopes, scope) {
			names = append(names, name)
		}
	}
	return names, nil
}

// moments returns the statistics of some features.
func (d *Data) moments(columns []int32) []dataset.Moments {
	all := make([]dataset.Moments, len(columns))
	for i, c := range columns {
		if d.Statistics != nil {
			all[i] = d.Statistics.Features[c]
		}
	}
	return all
}

// floats returns a number of each of some statistics.
func floats(all []dataset.Moments, of func(*dataset.Moments) float64) []float32 {
	values := make([]float32, len(all))
	for i := range all {
		values[i] = float32(of(&all[i]))
	}
	return values
}

func mean(m *dataset.Moments) float64    { return m.Mean }
func minimum(m *dataset.Moments) float64 { return m.Min }

// variance is 1 for a constant column, so that nothing is divided by 0.
func variance(m *dataset.Moments) float64 {
	_, deviation := m.Scaling(dataset.NormalizeStandard)
	return deviation * deviation
}

func valueRange(m *dataset.Moments) float64 {
	_, divide := m.Scaling(dataset.NormalizeMinMax)
	return divide
}

// missing reports whether some number is missing.
func missing(all []dataset.Moments) bool {
	for _, m := range all {
		if m.Missing > 0 {
			return true
		}
	}
	return false
}

// oneHotWords is the number of words up to which a category is given as a row
// of zeros and a one; one of more words has a vector for each, which is learnt.
const oneHotWords = 128

// embeddingSize is the length of the vectors of a category.
func embeddingSize(words int) int64 {
	return int64(min(50, math.Ceil(1.6*math.Pow(float64(words), .56))))
}
