package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// The verbs of requests.
const (
	verbPredict  = "predict"
	verbClassify = "classify"
	verbRegress  = "regress"
)

// isVerb reports whether a verb is one that is posted.
func isVerb(verb string) bool {
	return verb == verbPredict || verb == verbClassify || verb == verbRegress
}

// parse reads the body of a request with a verb.
func parse(verb string, body []byte, m *predict.Model) (*request, error) {
	if verb == verbPredict {
		return parseRequest(body, m)
	}
	return parseExamples(verb, body, m)
}

// parseExamples reads the body of :classify and :regress: examples, each an object
// of features, and a context with those that all have in common.
func parseExamples(verb string, body []byte, m *predict.Model) (*request, error) {
	var q struct {
		Signature string          `json:"signature_name"`
		Context   json.RawMessage `json:"context"`
		Examples  json.RawMessage `json:"examples"`
	}
	if err := decode(quoteNonFinite(body), &q); err != nil {
		return nil, parseError(err)
	}
	m, err := signed(q.Signature, m)
	if err != nil {
		return nil, err
	}
	list, err := decodeList(m, "examples", "example", q.Examples)
	if err != nil {
		return nil, err
	}
	form := formOf(m.Schema)
	context, err := contextOf(m, form, q.Context)
	if err != nil {
		return nil, err
	}
	for i, one := range list {
		if list[i], err = example(m, form, context, one); err != nil {
			return nil, fmt.Errorf("example %d: %w", i, err)
		}
	}
	r, err := parseInstances(list, m)
	if err != nil {
		return nil, err
	}
	r.results = func(out map[string]*ckptfmt.Tensor) ([]byte, error) { return results(verb, m, len(list), out) }
	return r, nil
}

// contextOf returns the features that all examples have in common.
func contextOf(m *predict.Model, f form, raw json.RawMessage) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := decodeFor(m, raw)
	if err != nil {
		return nil, fmt.Errorf("JSON Value: %w", err)
	}
	context, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New(`"context" must be an object of features`)
	}
	return f.row(context)
}

// example returns the features of an example, and those of the context that it does not have itself.
// It is a string if the model takes tf.Examples.
func example(m *predict.Model, f form, context map[string]any, v any) (any, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("is not an object of features")
	}
	own, err := f.row(object)
	if err != nil {
		return nil, err
	}
	whole := make(map[string]any, len(context)+len(own))
	maps.Copy(whole, context)
	maps.Copy(whole, own)
	if takesExamples(m) {
		return serialized(whole)
	}
	for name, v := range whole {
		whole[name] = single(m, name, v)
	}
	return whole, nil
}

// single returns the value of a list with one: features may be written so, and a
// column takes one for each example.
func single(m *predict.Model, name string, v any) any {
	list, ok := v.([]any)
	if !ok || len(list) != 1 {
		return v
	}
	key, _ := m.Input(name)
	info := m.Signature.GetInputs()[key]
	if shape := graph.ShapeFromProto(info.GetTensorShape()); info != nil && (shape.UnknownRank || len(shape.Dims) != 1) {
		return v
	}
	return list[0]
}

// results writes for each example the classes with their probabilities, or the
// predicted number.
func results(verb string, m *predict.Model, rows int, out map[string]*ckptfmt.Tensor) ([]byte, error) {
	switch {
	case takesExamples(m):
		return exampleResults(verb, m, rows, out)
	case verb == verbRegress:
		return regressions(m, out[model.OutputPrediction])
	}
	return classifications(m, out[model.OutputProbabilities])
}

func regressions(m *predict.Model, t *ckptfmt.Tensor) ([]byte, error) {
	if t == nil {
		return nil, noResults(m, "number", verbClassify, nil)
	}
	w, err := newTensorWriter(model.OutputPrediction, t)
	if err != nil {
		return nil, err
	}
	return answerRows("results", w.numbers.Len(), w.element), nil
}

func classifications(m *predict.Model, t *ckptfmt.Tensor) ([]byte, error) {
	if t == nil || len(t.Shape) != 2 {
		return nil, noResults(m, "classes", verbRegress, nil)
	}
	w, err := newTensorWriter(model.OutputProbabilities, t)
	if err != nil {
		return nil, err
	}
	width := int(t.Shape[1])
	pair := func(b []byte, row, class int) []byte {
		b = append(appendString(append(b, '['), className(m, class)), ", "...)
		return append(w.element(b, row*width+class), ']')
	}
	return answerRows("results", int(t.Shape[0]), func(b []byte, row int) []byte {
		return appendList(b, width, func(b []byte, class int) []byte { return pair(b, row, class) })
	}), nil
}

func className(m *predict.Model, class int) string {
	if m.Schema == nil {
		return strconv.Itoa(class)
	}
	return m.Schema.ClassName(class)
}
