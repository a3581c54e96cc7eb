package dataset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// HasWeights reports whether some examples count more than others.
func (o Options) HasWeights() bool { return o.Weight != "" || o.Balance || len(o.ClassWeights) > 0 }

// HasWeights reports whether some examples count more than others.
func (d *Dataset) HasWeights() bool { return d.opts.HasWeights() }

// parseWeight returns the weight in a field, or what is wrong with it.
func parseWeight(field string) (w float32, reason, hint string) {
	if IsMissing(field) {
		return 0, "the weight is missing", "fill it in, or remove the row"
	}
	if w, reason, hint = parseFeature(field); reason != "" {
		return 0, "the weight: " + reason, hint
	}
	return w, checkWeight(w), "correct it, or remove the row"
}

// checkWeight says what is wrong with a weight, "" for nothing.
func checkWeight(w float32) string {
	if w >= 0 && !math.IsInf(float64(w), 0) {
		return ""
	}
	return fmt.Sprintf("the weight %v is not a number from 0 up", w)
}

// weigh returns the weight of each row of the source in a part, nil if the data
// have none. Only the training part knows weights of classes.
func (s *source) weigh(part []uint32, training bool, o Options) ([]float32, error) {
	if !o.HasWeights() || len(part) == 0 {
		return nil, nil
	}
	all := make([]float32, s.rows.count())
	of := func(int64) float64 { return 1 }
	if training && !o.Numbers {
		var err error
		if of, err = s.classWeights(part, o); err != nil {
			return nil, err
		}
	}
	sum := 0.0
	for _, row := range part {
		label, err := s.rows.label(int(row))
		if err != nil {
			return nil, err
		}
		all[row] = float32(of(label))
		if s.weights != nil {
			all[row] *= s.weights[row]
		}
		sum += float64(all[row])
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil, &Error{File: s.name, Name: o.Weight, Reason: fmt.Sprintf("the sum of the weights of %d rows is %v", len(part), sum),
			Hint: "check data.weight and data.class_weights"}
	}
	mean := sum / float64(len(part))
	for _, row := range part {
		all[row] = float32(float64(all[row]) / mean)
	}
	return all, nil
}

// classWeights returns the weights of classes. Those of balanced classes go by
// how often each is in the part.
func (s *source) classWeights(part []uint32, o Options) (of func(class int64) float64, err error) {
	weights := make([]float64, s.classes)
	for class := range weights {
		weights[class] = 1
	}
	if o.Balance {
		if err := s.balance(weights, part); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.ClassWeights)) {
		class := slices.Index(s.classNames, name)
		if class < 0 && s.classNames == nil {
			if n, err := strconv.Atoi(name); err == nil {
				class = n
			}
		}
		if class < 0 || class >= len(weights) {
			return nil, &Error{File: s.name, Reason: fmt.Sprintf("data.class_weights has the class %s, which the data do not have", clip(name)), Hint: s.classHint()}
		}
		weights[class] *= o.ClassWeights[name]
	}
	return func(class int64) float64 { return weights[class] }, nil
}

// balance makes weights such that each class has the same in all.
func (s *source) balance(weights []float64, part []uint32) error {
	counts, present := make([]int, len(weights)), 0
	for _, row := range part {
		label, err := s.rows.label(int(row))
		if err != nil {
			return err
		}
		if counts[label]++; counts[label] == 1 {
			present++
		}
	}
	for class, n := range counts {
		if n > 0 {
			weights[class] = float64(len(part)) / float64(present*n)
		}
	}
	return nil
}

func (s *source) classHint() string {
	if s.classNames == nil {
		return fmt.Sprintf("the classes are 0 to %d", s.classes-1)
	}
	return "the classes are " + quoteNames(s.classNames)
}
