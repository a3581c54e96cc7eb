package predict

import (
	"errors"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// Score compares predictions with labels.
type Score struct {
	Rows int `json:"rows"`
	// Unlabelled is how many more rows have no label.
	Unlabelled int `json:"unlabelled,omitempty"`

	// For classes. Baseline is the accuracy of always predicting the most
	// frequent class in these rows. AUC is the area under the ROC curve: of two
	// classes, or the mean over each class against the others.
	Accuracy  *manifest.Metric `json:"accuracy,omitempty"`
	Loss      *manifest.Metric `json:"loss,omitempty"` // the mean cross entropy
	AUC       *manifest.Metric `json:"auc,omitempty"`
	Classes   []string         `json:"classes,omitempty"`
	Confusion [][]int64        `json:"confusion,omitempty"` // [label][prediction]

	// For numbers. Baseline is the RMSE of always predicting the mean of these
	// labels.
	MSE  *manifest.Metric `json:"mse,omitempty"`
	RMSE *manifest.Metric `json:"rmse,omitempty"`
	MAE  *manifest.Metric `json:"mae,omitempty"`
	R2   *manifest.Metric `json:"r2,omitempty"`

	Baseline *manifest.Metric `json:"baseline,omitempty"`
}

// Scorer collects the data for a Score. It needs a float32 and a class for each
// row and class, for AUC.
type Scorer struct {
	classes []string
	rows    int

	// of classes
	confusion [][]int64
	loss      float64
	labels    []int32
	scores    [][]float32 // of each class

	// of numbers
	squares, absolute float64
	mean, deviations  float64 // of the labels, by Welford's method
}

// NewScorer returns a Scorer for a model with these classes, none for numbers.
func NewScorer(classes []string) *Scorer {
	s := &Scorer{classes: classes, scores: make([][]float32, len(classes))}
	for range classes {
		s.confusion = append(s.confusion, make([]int64, len(classes)))
	}
	return s
}

// ErrNoRows says that there is nothing to compare.
var ErrNoRows = errors.New("no row has a label")

// Add counts a row with a label.
func (s *Scorer) Add(r *Row) {
	s.rows++
	if len(s.classes) == 0 {
		s.addNumber(float64(r.Value), r.Label)
		return
	}
	label := int(r.Label)
	s.confusion[label][r.Class]++
	s.labels = append(s.labels, int32(label))
	for c, p := range r.Probabilities {
		s.scores[c] = append(s.scores[c], p)
	}
	const least = 1e-7 // as Keras clips probabilities
	s.loss -= math.Log(max(float64(r.Probabilities[label]), least))
}

func (s *Scorer) addNumber(value, label float64) {
	d := value - label
	s.squares += d * d
	s.absolute += math.Abs(d)
	off := label - s.mean
	s.mean += off / float64(s.rows)
	s.deviations += off * (label - s.mean)
}

// Score returns the result.
func (s *Scorer) Score() (*Score, error) {
	if s.rows == 0 {
		return nil, ErrNoRows
	}
	n := float64(s.rows)
	if len(s.classes) == 0 {
		mse := s.squares / n
		score := &Score{Rows: s.rows, MSE: metric(mse), RMSE: metric(math.Sqrt(mse)), MAE: metric(s.absolute / n), Baseline: metric(math.Sqrt(s.deviations / n))}
		if s.deviations > 0 {
			score.R2 = metric(1 - s.squares/s.deviations)
		}
		return score, nil
	}
	right, frequent := int64(0), int64(0)
	for label, row := range s.confusion {
		right += row[label]
		total := int64(0)
		for _, count := range row {
			total += count
		}
		frequent = max(frequent, total)
	}
	return &Score{Rows: s.rows, Classes: s.classes, Confusion: s.confusion, Accuracy: metric(float64(right) / n), Loss: metric(s.loss / n),
		AUC: s.auc(), Baseline: metric(float64(frequent) / n)}, nil
}

func metric(v float64) *manifest.Metric { return (*manifest.Metric)(&v) }

// auc returns the area under the ROC curve, nil if no class has rows on both
// sides.
func (s *Scorer) auc() *manifest.Metric {
	if len(s.classes) == 2 {
		return areaUnder(s.scores[1], s.labels, 1)
	}
	sum, n := 0.0, 0
	for c := range s.classes {
		if a := areaUnder(s.scores[c], s.labels, int32(c)); a != nil {
			sum += float64(*a)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return metric(sum / float64(n))
}

// areaUnder returns the probability that a row of a class has a higher score than
// one of another class, equal ones counting a half (Mann and Whitney, 1947); nil
// if there are not both, or a score is NaN.
func areaUnder(scores []float32, labels []int32, class int32) *manifest.Metric {
	if slices.ContainsFunc(scores, func(v float32) bool { return v != v }) {
		return nil
	}
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case scores[a] < scores[b]:
			return -1
		case scores[a] > scores[b]:
			return 1
		}
		return 0
	})
	ranks, positives := 0.0, 0
	for i := 0; i < len(order); {
		end := i
		for end < len(order) && scores[order[end]] == scores[order[i]] {
			end++
		}
		rank := float64(i+end+1) / 2 // the mean of the ranks from 1 of equal scores
		for _, row := range order[i:end] {
			if labels[row] == class {
				ranks += rank
				positives++
			}
		}
		i = end
	}
	p, others := float64(positives), float64(len(order)-positives)
	if p == 0 || others == 0 {
		return nil
	}
	return metric((ranks - p*(p+1)/2) / (p * others))
}

// ClassNames returns the names of the classes of a model, nil for numbers.
func (m *Model) ClassNames() []string {
	if m.Schema.Classes == 0 {
		return nil
	}
	names := make([]string, m.Schema.Classes)
	for i := range names {
		names[i] = m.Schema.ClassName(i)
	}
	return names
}
