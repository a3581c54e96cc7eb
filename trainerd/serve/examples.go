package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// The signatures of TensorFlow's estimators, and of others that take tf.Examples: TensorFlow's
// classification_signature_def and regression_signature_def make them.
const (
	methodClassify = "tensorflow/serving/classify"
	methodRegress  = "tensorflow/serving/regress"

	examplesKey = "inputs"  // of their only input
	classesKey  = "classes" // of the texts and numbers that :classify answers; one of them may be missing
	scoresKey   = "scores"
	numbersKey  = "outputs" // of what :regress answers
)

// takesExamples reports whether the signature takes tf.Examples.
func takesExamples(m *predict.Model) bool {
	method := m.Signature.GetMethodName()
	input := m.Signature.GetInputs()[examplesKey]
	return (method == methodClassify || method == methodRegress) && len(m.Signature.GetInputs()) == 1 && input.GetDtype() == tfpb.DataType_DT_STRING
}

// serialized returns an example as the graph parses it.
func serialized(object map[string]any) (string, error) {
	features := make(map[string]*tfpb.Feature, len(object))
	for name, v := range object {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		f, err := featureOf(list)
		if err != nil {
			return "", fmt.Errorf("the feature %q: %w", name, err)
		}
		features[name] = f
	}
	return string(tfexample.Marshal(tfexample.New(features))), nil
}

// featureOf returns the values of a feature: integers, floats if one of them is written as such, or bytes.
func featureOf(list []any) (*tfpb.Feature, error) {
	switch {
	case len(list) == 0:
		return new(tfpb.Feature), nil
	case !slices.ContainsFunc(list, isNumber):
		words := make([]string, len(list))
		for i, v := range list {
			var err error
			if words[i], err = stringOf(v); err != nil || v == nil {
				return nil, fmt.Errorf("%s is neither a number nor a string", clip(v))
			}
		}
		return tfexample.Strings(words...), nil
	case slices.ContainsFunc(list, isFraction):
		floats := make([]float32, len(list))
		for i, v := range list {
			f, err := floatOf(v, nil)
			if floats[i] = float32(f); err != nil || v == nil {
				return nil, fmt.Errorf("%s is not a number, as others in its list", clip(v))
			}
		}
		return tfexample.Floats(floats...), nil
	}
	numbers := make([]int64, len(list))
	for i, v := range list {
		if b, ok := v.(bool); ok {
			v = json.Number("0")
			if b {
				v = json.Number("1")
			}
		}
		var err error
		if numbers[i], err = intOf(v, math.MinInt64, math.MaxInt64); err != nil {
			return nil, err
		}
	}
	return tfexample.Int64s(numbers...), nil
}

func isNumber(v any) bool {
	switch v.(type) {
	case json.Number, bool:
		return true
	}
	return false
}

// isFraction reports whether a value among numbers is a float: written with a point or an exponent, or not finite.
func isFraction(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return strings.ContainsAny(v.String(), ".eE")
	case string:
		return true // NaN, as a request has it between quotes
	}
	return false
}

// exampleResults writes what a signature that takes tf.Examples answers to a verb.
func exampleResults(verb string, m *predict.Model, rows int, out map[string]*ckptfmt.Tensor) ([]byte, error) {
	if verb == verbRegress {
		numbers, err := column(m, out, numbersKey, rows)
		if err != nil || numbers == nil {
			return nil, noResults(m, "number", verbClassify, err)
		}
		return answerRows("results", rows, numbers.element), nil
	}
	classes, err := column(m, out, classesKey, rows)
	scores, err2 := column(m, out, scoresKey, rows)
	if err == nil {
		err = err2
	}
	if err != nil || classes == nil && scores == nil {
		return nil, noResults(m, "classes", verbRegress, err)
	}
	width := 0
	for _, w := range []*tensorWriter{classes, scores} {
		if w != nil && width > 0 && w.width(rows) != width {
			return nil, fmt.Errorf("the outputs %q and %q of the signature %q have different sizes", classesKey, scoresKey, m.SignatureKey)
		}
		if w != nil {
			width = w.width(rows)
		}
	}
	return answerRows("results", rows, func(b []byte, row int) []byte {
		return appendList(b, width, func(b []byte, class int) []byte {
			at := row*width + class
			label, score := `""`, "0.0" // of a signature without them, as TensorFlow Serving has it
			if classes != nil {
				label = string(classes.element(nil, at))
			}
			if scores != nil {
				score = string(scores.element(nil, at))
			}
			return append(b, "["+label+", "+score+"]"...)
		})
	}), nil
}

// column returns what writes an output with values for each row; nil if there is no such output.
func column(m *predict.Model, out map[string]*ckptfmt.Tensor, key string, rows int) (*tensorWriter, error) {
	t := out[key]
	if t == nil {
		return nil, nil
	}
	if len(t.Shape) == 0 || len(t.Shape) > 2 || t.Shape[0] != int64(rows) {
		return nil, fmt.Errorf("the output %q of the signature %q has the shape %v for %d examples", key, m.SignatureKey, t.Shape, rows)
	}
	return newTensorWriter(key, t)
}

func noResults(m *predict.Model, what, other string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("the signature %q predicts no %s; use :%s or :%s", m.SignatureKey, what, other, verbPredict)
}
