package predict

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// Row is a predicted row. It is overwritten by the next one.
type Row struct {
	*dataset.Example
	// Value is the predicted number.
	Value float32
	// Class is the most probable class, and Probabilities has those of all
	// classes; none for a model that predicts numbers.
	Class         int64
	Probabilities []float32
}

// batchBytes limits the rows that are predicted at a time.
const (
	batchRows  = 1024
	batchBytes = 8 << 20
)

// FillsMissing reports whether the model accepts NaN for a missing number.
func (m *Model) FillsMissing() bool {
	for _, n := range m.Meta.GetGraphDef().GetNode() {
		if n.GetOp() == "IsNan" {
			return true
		}
	}
	return false
}

// Stream predicts the rows of examples in order, many at a time.
func (m *Model) Stream(ctx context.Context, in *dataset.Examples, f func(*Row) error) error {
	b := m.newBatch(m.Schema.Width(), f)
	err := in.Each(func(e *dataset.Example) error {
		b.x = append(b.x, e.X...)
		b.rows = append(b.rows, dataset.Example{Label: e.Label, File: e.File, Kept: e.Kept})
		if len(b.rows) == b.limit {
			return b.flush(ctx)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return b.flush(ctx)
}

// batch holds rows until there are enough.
type batch struct {
	model *Model
	limit int
	f     func(*Row) error
	x     []float32
	rows  []dataset.Example
}

// newBatch returns an empty batch for rows of so many numbers.
func (m *Model) newBatch(width int, f func(*Row) error) *batch {
	return &batch{model: m, limit: max(1, min(batchRows, batchBytes/4/max(1, width))), f: f}
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.rows) == 0 {
		return nil
	}
	out, err := b.model.Predict(ctx, b.x)
	if err != nil {
		return err
	}
	width := len(b.x) / len(b.rows)
	for i := range b.rows {
		b.rows[i].X = b.x[i*width : (i+1)*width]
		row := &Row{Example: &b.rows[i]}
		if out.Values != nil {
			row.Value = out.Values[i]
		} else {
			row.Class, row.Probabilities = out.Classes[i], out.Probabilities[i*out.Width:(i+1)*out.Width]
		}
		if err := b.f(row); err != nil {
			return err
		}
	}
	b.x, b.rows = b.x[:0], b.rows[:0]
	return nil
}

// StreamTest predicts the rows of the test part of a Dataset that the model was trained
// with, in order, many at a time.
func (m *Model) StreamTest(ctx context.Context, d *dataset.Dataset, f func(*Row) error) error {
	b := m.newBatch(d.Features, f)
	for row := 0; row < d.TestRows; row += b.limit {
		x, y, err := d.Test(row, b.limit)
		if err != nil {
			return err
		}
		if err := b.add(x, y); err != nil {
			return err
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// add adds rows with their labels, as a Dataset has them: numbers, or ids and classes.
func (b *batch) add(x, y *ckptfmt.Tensor) error {
	inputs, err := inspect.NumbersOf(x)
	if err != nil {
		return err
	}
	labels, err := inspect.NumbersOf(y)
	if err != nil {
		return err
	}
	for i := range inputs.Len() {
		b.x = append(b.x, float32(inputs.At(i)))
	}
	for i := range labels.Len() {
		b.rows = append(b.rows, dataset.Example{Label: labels.At(i)})
	}
	return nil
}
