package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

func jsonNumber(f float64) json.Number {
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// response writes the outputs in the format of the request.
func (q *request) response(out map[string]*ckptfmt.Tensor) ([]byte, error) {
	if q.results != nil {
		return q.results(out)
	}
	names := slices.Sorted(maps.Keys(out))
	var writers []*tensorWriter
	for _, name := range names {
		w, err := newTensorWriter(name, out[name])
		if err != nil {
			return nil, err
		}
		if q.rows >= 0 && (len(w.t.Shape) == 0 || w.t.Shape[0] != int64(q.rows)) {
			return nil, fmt.Errorf("the output %q has the shape %v, which is not one row for each of %d instances; use \"inputs\"", name, w.t.Shape, q.rows)
		}
		writers = append(writers, w)
	}
	if q.rows >= 0 {
		return answerRows("predictions", q.rows, func(b []byte, i int) []byte { return appendRow(b, writers, i) }), nil
	}
	b := []byte("{\n    \"outputs\": ")
	if len(writers) == 1 {
		b = writers[0].all(b)
	} else {
		b = appendObject(b, writers, func(b []byte, w *tensorWriter) []byte { return w.all(b) })
	}
	return append(b, "\n}\n"...), nil
}

// answerRows writes an answer that has a value for each row.
func answerRows(name string, rows int, value func(b []byte, i int) []byte) []byte {
	b := append(appendString([]byte("{\n    "), name), ": "...)
	return append(appendList(b, rows, value), "\n}\n"...)
}

func appendList(b []byte, n int, value func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = value(b, i)
	}
	return append(b, ']')
}

// appendRow writes the value of a row, or an object if there are several outputs.
func appendRow(b []byte, writers []*tensorWriter, i int) []byte {
	if len(writers) == 1 {
		return writers[0].row(b, i)
	}
	return appendObject(b, writers, func(b []byte, w *tensorWriter) []byte { return w.row(b, i) })
}

func appendObject(b []byte, writers []*tensorWriter, value func([]byte, *tensorWriter) []byte) []byte {
	b = append(b, '{')
	for i, w := range writers {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendString(b, w.name), ": "...)
		b = value(b, w)
	}
	return append(b, '}')
}

// tensorWriter writes a tensor as lists in lists.
type tensorWriter struct {
	name    string
	t       *ckptfmt.Tensor
	numbers *inspect.Numbers // nil for strings
	base64  bool             // strings are bytes
	floats  bool             // numbers have a point, also whole ones
}

func newTensorWriter(name string, t *ckptfmt.Tensor) (*tensorWriter, error) {
	w := &tensorWriter{name: name, t: t, base64: strings.HasSuffix(name, "_bytes"), floats: dtype.IsFloat(t.DType)}
	if t.DType == tfpb.DataType_DT_STRING {
		return w, nil
	}
	var err error
	if w.numbers, err = inspect.NumbersOf(t); err != nil {
		return nil, fmt.Errorf("the output %q: %w", name, err)
	}
	return w, nil
}

func (w *tensorWriter) all(b []byte) []byte {
	at := 0
	return w.list(b, w.t.Shape, &at)
}

func (w *tensorWriter) row(b []byte, i int) []byte {
	size := 1
	for _, d := range w.t.Shape[1:] {
		size *= int(d)
	}
	at := i * size
	return w.list(b, w.t.Shape[1:], &at)
}

func (w *tensorWriter) list(b []byte, shape []int64, at *int) []byte {
	if len(shape) == 0 {
		b = w.element(b, *at)
		*at++
		return b
	}
	return appendList(b, int(shape[0]), func(b []byte, _ int) []byte { return w.list(b, shape[1:], at) })
}

func (w *tensorWriter) element(b []byte, i int) []byte {
	switch {
	case w.numbers == nil && w.base64:
		b = append(b, `{"b64": `...)
		return append(appendString(b, base64.StdEncoding.EncodeToString(w.t.Strings[i])), '}')
	case w.numbers == nil:
		return appendString(b, string(w.t.Strings[i]))
	case w.t.DType == tfpb.DataType_DT_BOOL:
		return strconv.AppendBool(b, w.numbers.At(i) != 0)
	}
	return w.number(b, i)
}

// width returns how many elements each row has.
func (w *tensorWriter) width(rows int) int {
	n := len(w.t.Strings)
	if w.numbers != nil {
		n = w.numbers.Len()
	}
	return n / rows
}

// number writes a number as TensorFlow Serving does: whole floats with a point, so that Python reads floats, and what
// is not finite as Python has it.
func (w *tensorWriter) number(b []byte, i int) []byte {
	switch v := w.numbers.At(i); {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "Infinity"...)
	case math.IsInf(v, -1):
		return append(b, "-Infinity"...)
	}
	begin := len(b)
	b = w.numbers.AppendText(b, i)
	if w.floats && !bytes.ContainsAny(b[begin:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // cannot be: every string can be written
	}
	return append(b, text...)
}

// The metadata of a model, as TensorFlow Serving writes the messages.
type (
	dimension struct {
		Size string `json:"size"`
		Name string `json:"name"`
	}
	tensorShape struct {
		Dim         []dimension `json:"dim"`
		UnknownRank bool        `json:"unknown_rank"`
	}
	tensorInfo struct {
		DType string      `json:"dtype"`
		Shape tensorShape `json:"tensor_shape"`
		Name  string      `json:"name"`
	}
	signature struct {
		Inputs     map[string]tensorInfo `json:"inputs"`
		Outputs    map[string]tensorInfo `json:"outputs"`
		MethodName string                `json:"method_name"`
	}
)

func (s *Server) metadata(w http.ResponseWriter, h *held) {
	all := make(map[string]signature)
	for key, d := range h.Meta.GetSignatureDef() {
		all[key] = signature{describe(d.GetInputs()), describe(d.GetOutputs()), d.GetMethodName()}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"model_spec": map[string]string{"name": s.o.Name, "signature_name": "", "version": strconv.FormatInt(h.version, 10)},
		"metadata":   map[string]any{"signature_def": map[string]any{"signature_def": all}},
	})
}

func describe(infos map[string]*tfpb.TensorInfo) map[string]tensorInfo {
	all := make(map[string]tensorInfo)
	for key, t := range infos {
		shape := tensorShape{Dim: []dimension{}, UnknownRank: t.GetTensorShape().GetUnknownRank()}
		for _, d := range t.GetTensorShape().GetDim() {
			shape.Dim = append(shape.Dim, dimension{strconv.FormatInt(d.GetSize(), 10), d.GetName()})
		}
		all[key] = tensorInfo{t.GetDtype().String(), shape, t.GetName()}
	}
	return all
}
