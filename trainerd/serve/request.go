package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// request is a request for predictions.
type request struct {
	inputs map[string]*ckptfmt.Tensor
	rows   int // of the row format, -1 for the column format
	// results makes the answer to :classify and :regress; nil for :predict.
	results func(map[string]*ckptfmt.Tensor) (any, error)
}

// parseRequest reads the body of a request.
func parseRequest(body []byte, m *predict.Model) (*request, error) {
	var q struct {
		Signature string          `json:"signature_name"`
		Instances json.RawMessage `json:"instances"`
		Inputs    json.RawMessage `json:"inputs"`
	}
	d := json.NewDecoder(bytes.NewReader(quoteNonFinite(body)))
	if err := d.Decode(&q); err != nil {
		return nil, parseError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("JSON Parse error: something follows the object")
	}
	if q.Signature != "" && q.Signature != m.SignatureKey {
		return nil, fmt.Errorf("signature_name %q not found in the signature def; it is %q", q.Signature, m.SignatureKey)
	}
	switch {
	case q.Instances != nil && q.Inputs != nil:
		return nil, errors.New(`JSON Value: there are "instances" and "inputs"; only one of them is allowed`)
	case q.Instances != nil:
		return parseInstances(q.Instances, m)
	case q.Inputs != nil:
		return parseInputs(q.Inputs, m)
	}
	return nil, errors.New(`JSON Value: missing "instances" (row format) or "inputs" (column format)`)
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

// decode reads JSON with numbers as they are written.
func decode(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}

// parseInstances reads the row format: a list of values for the only input, or
// of objects with a value for each input.
func parseInstances(raw json.RawMessage, m *predict.Model) (*request, error) {
	var list []any
	if err := decode(raw, &list); err != nil || len(list) == 0 {
		return nil, errors.New(`"instances" must be a list of one instance or more`)
	}
	columns := make(map[string][]any)
	names := slices.Sorted(maps.Keys(m.Signature.GetInputs()))
	rows := newRowObjects(m)
	for i, one := range list {
		object, ok := one.(map[string]any)
		if _, isBytes := object["b64"]; ok && isBytes && len(object) == 1 {
			ok = false // a string
		}
		switch {
		case ok && rows != nil && object["x"] == nil:
			row, err := rows.row(object)
			if err != nil {
				return nil, fmt.Errorf("instance %d: %w", i, err)
			}
			columns["x"] = append(columns["x"], row)
		case ok:
			if err := addObject(columns, object, names, m); err != nil {
				return nil, fmt.Errorf("instance %d: %w", i, err)
			}
		case len(names) != 1:
			return nil, fmt.Errorf("instance %d is not an object; the inputs are %q", i, columnsOf(m, names))
		default:
			columns[names[0]] = append(columns[names[0]], one)
		}
	}
	q := &request{inputs: make(map[string]*ckptfmt.Tensor), rows: len(list)}
	for name, values := range columns {
		if err := q.add(name, values, m); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// addObject adds an instance that has a value for each input.
func addObject(columns map[string][]any, object map[string]any, names []string, m *predict.Model) error {
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
	var v any
	if err := decode(raw, &v); err != nil {
		return nil, fmt.Errorf("JSON Parse error: %w", err)
	}
	q := &request{inputs: make(map[string]*ckptfmt.Tensor), rows: -1}
	object, ok := v.(map[string]any)
	if _, isBytes := object["b64"]; !ok || isBytes && len(object) == 1 {
		names := slices.Sorted(maps.Keys(m.Signature.GetInputs()))
		if len(names) != 1 {
			return nil, fmt.Errorf(`"inputs" must be an object with the inputs %q`, names)
		}
		return q, q.add(names[0], v, m)
	}
	if rows := newRowObjects(m); rows != nil && object["x"] == nil {
		all, err := rows.ofColumns(object)
		if err != nil {
			return nil, err
		}
		return q, q.add("x", all, m)
	}
	for name, value := range object {
		if err := q.add(name, value, m); err != nil {
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

// tensorOf makes a tensor of lists in lists.
func tensorOf(v any, d tfpb.DataType, number func(string) (float64, error)) (*ckptfmt.Tensor, error) {
	shape := shapeOf(v)
	var leaves []any
	if err := flatten(v, shape, &leaves); err != nil {
		return nil, err
	}
	switch d {
	case tfpb.DataType_DT_STRING:
		return fill(shape, leaves, stringOf)
	case tfpb.DataType_DT_BOOL:
		return fill(shape, leaves, boolOf)
	case tfpb.DataType_DT_FLOAT:
		return fill(shape, leaves, func(v any) (float32, error) {
			f, err := floatOf(v, number)
			return float32(f), err
		})
	case tfpb.DataType_DT_DOUBLE:
		return fill(shape, leaves, func(v any) (float64, error) { return floatOf(v, number) })
	case tfpb.DataType_DT_INT64:
		return fill(shape, leaves, func(v any) (int64, error) { return intOf(v, 64) })
	case tfpb.DataType_DT_INT32:
		return fill(shape, leaves, func(v any) (int32, error) {
			n, err := intOf(v, 32)
			return int32(n), err
		})
	case tfpb.DataType_DT_UINT8:
		return fill(shape, leaves, func(v any) (uint8, error) {
			n, err := intOf(v, 9)
			if n < 0 || n > math.MaxUint8 {
				err = fmt.Errorf("%v is outside of 0 to 255", v)
			}
			return uint8(n), err
		})
	}
	return nil, fmt.Errorf("is %s, which JSON requests cannot give", dtype.Name(d))
}

func fill[T ckptfmt.Element](shape []int64, leaves []any, of func(any) (T, error)) (*ckptfmt.Tensor, error) {
	values := make([]T, len(leaves))
	for i, v := range leaves {
		var err error
		if values[i], err = of(v); err != nil && len(shape) > 0 {
			return nil, fmt.Errorf("row %d: %w", int64(i)*shape[0]/int64(len(leaves)), err)
		} else if err != nil {
			return nil, err
		}
	}
	return ckptfmt.FromValues(shape, values)
}

// shapeOf returns the shape that the first elements have.
func shapeOf(v any) (shape []int64) {
	for {
		list, ok := v.([]any)
		if !ok {
			return shape
		}
		shape = append(shape, int64(len(list)))
		if len(list) == 0 {
			return shape
		}
		v = list[0]
	}
}

// flatten appends the elements of lists in lists, all of which have the shape.
func flatten(v any, shape []int64, leaves *[]any) error {
	list, ok := v.([]any)
	switch {
	case !ok && len(shape) == 0:
		*leaves = append(*leaves, v)
		return nil
	case !ok, len(shape) == 0, int64(len(list)) != shape[0]:
		return errors.New("is a list of lists that differ in length")
	}
	for _, one := range list {
		if err := flatten(one, shape[1:], leaves); err != nil {
			return err
		}
	}
	return nil
}

func stringOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil // missing
	case string:
		return v, nil
	case map[string]any:
		if text, ok := v["b64"].(string); ok && len(v) == 1 {
			data, err := base64.StdEncoding.DecodeString(text)
			return string(data), err
		}
	}
	return "", fmt.Errorf("%s is not a string", clip(v))
}

func boolOf(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s is not true or false", clip(v))
	}
	return b, nil
}

// floatOf returns a number; null is a missing one.
func floatOf(v any, text func(string) (float64, error)) (float64, error) {
	switch v := v.(type) {
	case nil:
		return math.NaN(), nil
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return 0, fmt.Errorf("%s is out of range", clip(v))
		}
		return f, nil
	case string:
		switch v {
		case "NaN":
			return math.NaN(), nil
		case "Infinity":
			return math.Inf(1), nil
		case "-Infinity":
			return math.Inf(-1), nil
		}
		if text != nil {
			return text(v)
		}
	}
	return 0, fmt.Errorf("%s is not a number", clip(v))
}

func intOf(v any, bits int) (int64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is not an integer", clip(v))
	}
	i, err := strconv.ParseInt(n.String(), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is not an integer of %d bits", clip(v), bits)
	}
	return i, nil
}

// clip shows a value of a request, cut when it is long.
func clip(v any) string {
	const longest = 40
	text, err := json.Marshal(v)
	if err != nil || len(text) > longest {
		text = append(text[:min(len(text), longest)], "..."...)
	}
	return string(text)
}
