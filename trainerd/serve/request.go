package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// request is a request for predictions.
type request struct {
	model  *predict.Model // with the signature that it asks
	inputs map[string]*ckptfmt.Tensor
	rows   int // of the row format, -1 for the column format
	// results writes the answer to :classify and :regress; nil for :predict.
	results func(map[string]*ckptfmt.Tensor) ([]byte, error)
}

// parseRequest reads the body of a request.
func parseRequest(body []byte, m *predict.Model) (*request, error) {
	var q struct {
		Signature string          `json:"signature_name"`
		Instances json.RawMessage `json:"instances"`
		Inputs    json.RawMessage `json:"inputs"`
	}
	if err := decode(quoteNonFinite(body), &q); err != nil {
		return nil, parseError(err)
	}
	m, err := signed(q.Signature, m)
	if err != nil {
		return nil, err
	}
	switch {
	case q.Instances != nil && q.Inputs != nil:
		return nil, errors.New(`JSON Value: there are "instances" and "inputs"; only one of them is allowed`)
	case q.Instances != nil:
		list, err := decodeList(m, "instances", "instance", q.Instances)
		if err != nil {
			return nil, err
		}
		return parseInstances(list, m)
	case q.Inputs != nil:
		return parseInputs(q.Inputs, m)
	}
	return nil, errors.New(`JSON Value: missing "instances" (row format) or "inputs" (column format)`)
}

// signed returns the model with the signature that a request names, "" for that of the server.
func signed(name string, m *predict.Model) (*predict.Model, error) {
	if all := m.Signatures(); name != "" && !slices.Contains(all, name) {
		return nil, fmt.Errorf("signature_name %q not found in the signature def; it has %q", name, all)
	}
	return m.With(name)
}

// decodeList reads a list that is not empty.
func decodeList(m *predict.Model, name, element string, raw json.RawMessage) ([]any, error) {
	var list []any
	if raw != nil {
		v, err := decodeFor(m, raw)
		if err != nil {
			return nil, fmt.Errorf("JSON Value: %w", err)
		}
		list, _ = v.([]any)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%q must be a list of one %s or more", name, element)
	}
	return list, nil
}

// parseError says what is wrong with the JSON of a request.
func parseError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("JSON Value: %q cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	if errors.As(err, &wrong) {
		return fmt.Errorf("JSON Value: the request is a JSON %s; want an object", wrong.Value)
	}
	return fmt.Errorf("JSON Parse error: %w", err)
}

// quoteNonFinite puts quotes around NaN, Infinity and -Infinity, which are no
// JSON but are written by Python, and read by TensorFlow Serving.
func quoteNonFinite(body []byte) []byte {
	if !bytes.Contains(body, []byte("NaN")) && !bytes.Contains(body, []byte("Infinity")) {
		return body
	}
	out := make([]byte, 0, len(body)+64)
	for i := 0; i < len(body); {
		if body[i] == '"' {
			end := stringEnd(body, i)
			out = append(out, body[i:end]...)
			i = end
			continue
		}
		n := 0
		for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
			if bytes.HasPrefix(body[i:], []byte(word)) {
				n = len(word)
				break
			}
		}
		if n > 0 {
			out = append(append(append(out, '"'), body[i:i+n]...), '"')
			i += n
			continue
		}
		out = append(out, body[i])
		i++
	}
	return out
}

// stringEnd returns where the string that begins at i ends.
func stringEnd(body []byte, i int) int {
	for i++; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}

// decode reads one JSON value, with numbers as they are written.
func decode(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}

// parseInstances reads the row format: a list of values for the only input, or
// of objects with a value for each input.
func parseInstances(list []any, m *predict.Model) (*request, error) {
	columns := make(map[string][]any)
	names := slices.Sorted(maps.Keys(m.Signature.GetInputs()))
	rows, form := newRowObjects(m), formOf(m.Schema)
	for i, one := range list {
		object := objectOf(one)
		switch {
		case object == nil && len(names) != 1:
			return nil, fmt.Errorf("instance %d is not an object; the inputs are %q", i, columnsOf(m, names))
		case object == nil:
			columns[names[0]] = append(columns[names[0]], one)
		default:
			object, err := form.row(object)
			if err == nil {
				err = addObject(columns, object, names, rows, m)
			}
			if err != nil {
				return nil, fmt.Errorf("instance %d: %w", i, err)
			}
		}
	}
	q := &request{model: m, inputs: make(map[string]*ckptfmt.Tensor), rows: len(list)}
	for name, values := range columns {
		if err := q.add(name, values, m); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// objectOf returns a value that is an object with names; nil for others, as for a string in base64.
func objectOf(v any) map[string]any {
	object, _ := v.(map[string]any)
	if _, isBytes := object["b64"]; isBytes && len(object) == 1 {
		return nil
	}
	return object
}

// addObject adds an instance that has a value for each input, or for each column of x.
func addObject(columns map[string][]any, object map[string]any, names []string, rows *rowObjects, m *predict.Model) error {
	if rows != nil && object["x"] == nil {
		row, err := rows.row(object)
		columns["x"] = append(columns["x"], row)
		return err
	}
	given := make(map[string]bool, len(object))
	for name, v := range object {
		key, _ := m.Input(name)
		if m.Schema != nil && m.Signature.GetInputs()[key] == nil {
			continue // columns that the model does not know, as in a file with more
		}
		if given[key] {
			return fmt.Errorf("the input %q is given twice", columnOf(m, key))
		}
		given[key] = true
		columns[key] = append(columns[key], v)
	}
	for _, name := range names {
		if !given[name] {
			return fmt.Errorf("the input %q is missing; the inputs are %q", columnOf(m, name), columnsOf(m, names))
		}
	}
	return nil
}

// columnOf returns the name of the column that an input takes, or the input's.
func columnOf(m *predict.Model, key string) string {
	if _, f := m.Input(key); f != nil && f.Name != "" {
		return f.Name
	}
	return key
}

func columnsOf(m *predict.Model, keys []string) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = columnOf(m, key)
	}
	return names
}

// parseInputs reads the column format: a tensor, or an object of tensors.
func parseInputs(raw json.RawMessage, m *predict.Model) (*request, error) {
	v, err := decodeFor(m, raw)
	if err != nil {
		return nil, fmt.Errorf("JSON Value: %w", err)
	}
	q := &request{model: m, inputs: make(map[string]*ckptfmt.Tensor), rows: -1}
	object := objectOf(v)
	if object == nil {
		names := slices.Sorted(maps.Keys(m.Signature.GetInputs()))
		if len(names) != 1 {
			return nil, fmt.Errorf(`"inputs" must be an object with the inputs %q`, names)
		}
		return q, q.add(names[0], v, m)
	}
	if object, err = formOf(m.Schema).columns(object); err != nil {
		return nil, err
	}
	if rows := newRowObjects(m); rows != nil && object["x"] == nil {
		all, err := rows.ofColumns(object)
		if err != nil {
			return nil, err
		}
		return q, q.add("x", all, m)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if key, _ := m.Input(name); m.Signature.GetInputs()[key] == nil {
			continue // as TensorFlow Serving does; what the model needs is not missing
		}
		if err := q.add(name, object[name], m); err != nil {
			return nil, err
		}
	}
	return q, q.checkRows(m)
}

// checkRows makes sure that all columns of a table have as many rows.
func (q *request) checkRows(m *predict.Model) error {
	first := ""
	for _, key := range slices.Sorted(maps.Keys(q.inputs)) {
		t := q.inputs[key]
		if _, column := m.Input(key); column == nil || len(t.Shape) != 1 {
			continue // the signature says what it takes
		}
		if first == "" {
			first = key
		}
		if want := q.inputs[first].Shape[0]; t.Shape[0] != want {
			return &predict.InputError{Key: columnOf(m, key), Reason: fmt.Sprintf("has %d rows, but %q has %d", t.Shape[0], columnOf(m, first), want)}
		}
	}
	return nil
}

// add makes the tensor of the input that a name means.
func (q *request) add(name string, v any, m *predict.Model) error {
	key, column := m.Input(name)
	info := m.Signature.GetInputs()[key]
	if info == nil {
		return &predict.InputError{Key: name, Reason: fmt.Sprintf("is not an input; the inputs are %q", columnsOf(m, slices.Sorted(maps.Keys(m.Signature.GetInputs()))))}
	}
	if q.inputs[key] != nil {
		return &predict.InputError{Key: columnOf(m, key), Reason: "is given twice"}
	}
	t, err := tensorOf(v, info.GetDtype(), textOf(column))
	if err != nil {
		return &predict.InputError{Key: columnOf(m, key), Reason: err.Error()}
	}
	q.inputs[key] = t
	return nil
}
