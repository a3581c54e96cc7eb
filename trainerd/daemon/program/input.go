package program

import (
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// Input is where a program's feeds come from. What it gives for a step is a
// function of the step, so a job that is resumed continues with what would have
// come.
type Input interface {
	// Feed adds to f what step, counted from 0, is fed. It returns
	// session.ErrOutOfRange when there is nothing more.
	Feed(step int64, f Feed) error
	// Tensors returns the names of the tensors that Feed adds at each step.
	Tensors() []string
	// Test adds up to limit test rows from start on, and returns their number.
	Test(start, limit int, f Feed) (rows int, err error)
	// Rows returns the sizes of the training and the test part.
	Rows() (train, test int)
	Close() error
}

// NoInput is for a graph that reads its own.
type NoInput struct{}

// Feed adds nothing.
func (NoInput) Feed(int64, Feed) error { return nil }

// Tensors returns nothing.
func (NoInput) Tensors() []string { return nil }

// Test has no rows.
func (NoInput) Test(int, int, Feed) (int, error) { return 0, nil }

// Rows returns no rows.
func (NoInput) Rows() (train, test int) { return 0, 0 }

// Close does nothing.
func (NoInput) Close() error { return nil }

// Names under which a [DataInput] gives a batch to what is bound to it. No tensor
// has them.
const (
	Features = "features"
	Label    = "label"
	Weight   = "weight"
)

// DataInput gives batches of a data set.
type DataInput struct{ Data *dataset.Dataset }

// Feed adds the batch of a step.
func (in *DataInput) Feed(step int64, f Feed) (err error) {
	f[Features], f[Label], err = in.Data.Batch(step)
	in.addWeights(f)
	return err
}

// Tensors returns nothing: what the batch is bound to has the names.
func (in *DataInput) Tensors() []string { return nil }

// addWeights adds the weights of the examples that the data have given.
func (in *DataInput) addWeights(f Feed) {
	if in.Data.HasWeights() {
		f[Weight] = in.Data.Weights()
	}
}

// Test adds rows of the test part.
func (in *DataInput) Test(start, limit int, f Feed) (int, error) {
	x, y, err := in.Data.Test(start, limit)
	if err != nil {
		return 0, err
	}
	f[Features], f[Label] = x, y
	in.addWeights(f)
	return int(x.Shape[0]), nil
}

// Rows returns the sizes of the two parts.
func (in *DataInput) Rows() (train, test int) { return in.Data.TrainRows, in.Data.TestRows }

// Close ends the use of the data.
func (in *DataInput) Close() error { return in.Data.Close() }

// BoundInput feeds the tensors of a graph from another input, and constants.
type BoundInput struct {
	Input
	Train, Eval []Binding
}

// Feed adds what the tensors are fed for a step.
func (in *BoundInput) Feed(step int64, f Feed) error {
	if err := in.Input.Feed(step, f); err != nil {
		return err
	}
	return bindAll(in.Train, f)
}

// Tensors returns those of the other input and those that are bound.
func (in *BoundInput) Tensors() []string {
	names := slices.Clone(in.Input.Tensors())
	for _, b := range in.Train {
		if !slices.Contains(names, b.Tensor) {
			names = append(names, b.Tensor)
		}
	}
	return names
}

// Test adds what the tensors are fed for rows of the test part.
func (in *BoundInput) Test(start, limit int, f Feed) (int, error) {
	rows, err := in.Input.Test(start, limit, f)
	if err != nil || rows == 0 {
		return 0, err
	}
	return rows, bindAll(in.Eval, f)
}

// bindAll replaces a batch by what is fed of it.
func bindAll(bindings []Binding, f Feed) (err error) {
	batch := Batch{Features: f[Features], Label: f[Label], Weight: f[Weight]}
	for _, name := range []string{Features, Label, Weight} {
		delete(f, name)
	}
	for _, b := range bindings {
		value := b.Fixed
		if b.Make != nil {
			if value, err = b.Make(batch); err != nil {
				return err
			}
		}
		f[b.Tensor] = value
	}
	return nil
}

// FamilyInput binds data to a model family.
func FamilyInput(m *model.Model, data *dataset.Dataset) Input {
	shaped := func(b Batch) (*ckptfmt.Tensor, error) {
		x := b.Features
		return &ckptfmt.Tensor{DType: x.DType, Shape: append([]int64{x.Shape[0]}, m.X.Shape.Dims[1:]...), Data: x.Data}, nil
	}
	eval := []Binding{
		{Tensor: m.X.Name, Make: shaped},
		{Tensor: m.Y.Name, Make: func(b Batch) (*ckptfmt.Tensor, error) { return b.Label, nil }},
	}
	if m.Weight != "" {
		eval = append(eval, Binding{Tensor: m.Weight, Make: func(b Batch) (*ckptfmt.Tensor, error) { return b.Weight, nil }})
	}
	train := eval
	if m.Training != "" {
		yes := &ckptfmt.Tensor{DType: tfpb.DataType_DT_BOOL, Data: []byte{1}}
		train = append([]Binding{{Tensor: m.Training, Fixed: yes}}, eval...)
	}
	return &BoundInput{Input: &DataInput{data}, Train: train, Eval: eval}
}
