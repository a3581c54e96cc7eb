package predict

import (
	"context"
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/model"
)

// Predictions are the predictions for some rows.
type Predictions struct {
	// Values are the predicted numbers, nil for classes.
	Values []float32
	// Classes are the most probable classes, nil for numbers. Probabilities has
	// those of all Width classes, row after row.
	Classes       []int64
	Probabilities []float32
	Width         int
}

// Predict predicts raw rows, concatenated in x, as the Schema describes them.
// The model must have a Schema.
func (m *Model) Predict(ctx context.Context, x []float32) (*Predictions, error) {
	width := m.Schema.Width()
	if width == 0 || len(x)%width != 0 {
		return nil, fmt.Errorf("%d numbers are not rows of %d features", len(x), width)
	}
	name, value, err := m.rowTensor(x, len(x)/width)
	if err != nil {
		return nil, err
	}
	out, err := m.fetch(ctx, map[string]*ckptfmt.Tensor{name: value})
	if err != nil {
		return nil, err
	}
	return readPredictions(out)
}

// rowsInput is the tensor of raw rows of a model that has an input for each column.
const rowsInput = "x:0"

// rowTensor returns what is fed for raw rows.
func (m *Model) rowTensor(x []float32, rows int) (name string, t *ckptfmt.Tensor, err error) {
	info := m.Signature.GetInputs()["x"]
	if m.Schema.HasWords() || info == nil {
		t, err = ckptfmt.FromValues([]int64{int64(rows), int64(m.Schema.Width())}, x)
		return rowsInput, t, err
	}
	shape := slices.Clone(graph.ShapeFromProto(info.GetTensorShape()).Dims)
	if len(shape) == 0 {
		return "", nil, &Error{Source: m.Source, Reason: "its input x has no shape"}
	}
	shape[0] = int64(rows)
	if info.GetDtype() != tfpb.DataType_DT_INT64 {
		t, err = ckptfmt.FromValues(shape, x)
		return info.GetName(), t, err
	}
	ids := make([]int64, len(x))
	for i, v := range x {
		ids[i] = int64(v)
	}
	t, err = ckptfmt.FromValues(shape, ids)
	return info.GetName(), t, err
}

func readPredictions(out map[string]*ckptfmt.Tensor) (p *Predictions, err error) {
	p = new(Predictions)
	if t := out[model.OutputPrediction]; t != nil {
		p.Values, err = ckptfmt.Values[float32](t)
		return p, err
	}
	classes, probabilities := out[model.OutputClasses], out[model.OutputProbabilities]
	if classes == nil || probabilities == nil || len(probabilities.Shape) != 2 {
		return nil, fmt.Errorf("the signature has neither %q nor %q and %q", model.OutputPrediction, model.OutputClasses, model.OutputProbabilities)
	}
	if p.Classes, err = ckptfmt.Values[int64](classes); err != nil {
		return nil, err
	}
	p.Width = int(probabilities.Shape[1])
	p.Probabilities, err = ckptfmt.Values[float32](probabilities)
	return p, err
}
