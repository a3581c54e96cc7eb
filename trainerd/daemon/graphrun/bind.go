package graphrun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/internal/fileerr"
	"github.com/trainerd/trainerd/internal/npy"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// bind resolves one entry of feeds.
func (g *graphFile) bind(name string, value any, c *config.Config, data *dataset.Dataset) (program.Binding, error) {
	tensor, err := g.tensor("", name)
	if err != nil {
		return program.Binding{}, errors.New(strings.TrimSpace(err.Error()))
	}
	b := program.Binding{Tensor: tensor}
	p := graph.Placeholder{Name: tensor, Shape: graph.UnknownShape}
	if i := slices.IndexFunc(g.placeholders, func(p graph.Placeholder) bool { return p.Name == tensor }); i >= 0 {
		p = g.placeholders[i]
	} else if n, err := g.Node(name); err == nil {
		p.DType = n.GetAttr()["dtype"].GetType() // a placeholder with a default
	}
	if g.unknownRank(p) {
		p.Shape = graph.UnknownShape
	}
	text, isText := value.(string)
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case !isText:
		b.Fixed, err = constantTensor(value, p)
	case kind == "npy":
		b.Fixed, err = readArray(c.ResolvePath("graph.feeds", rest))
	case data == nil && slices.Contains(dataSources, kind):
		err = fmt.Errorf("%q needs data, but data.file is not set", text)
	case kind == "column":
		b.Make, err = columnSource(rest, p, data)
	case kind == "features":
		b.Make, err = featureSource(p, data)
	case kind == "label":
		b.Make, err = labelSource(p, data)
	case kind == "weight":
		b.Make, err = weightSource(p, data)
	case kind == "one_hot":
		b.Make, err = oneHotSource(p, data)
	default:
		err = fmt.Errorf(`there is no input %q; want "features", "label", "weight", "one_hot", "column:NAME", "npy:FILE" or a number`, text)
	}
	if err != nil || b.Fixed == nil {
		return b, err
	}
	return b, g.checkFeed(tensor, b.Fixed.DType, b.Fixed.Shape)
}

var dataSources = []string{"features", "label", "weight", "one_hot", "column"}

func readArray(file string) (*ckptfmt.Tensor, error) {
	array, err := npy.ReadFile(file)
	var bad *npy.Error
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("%s: offset %d: %s", file, bad.Offset, bad.Reason)
	case err != nil:
		return nil, fmt.Errorf("%s: %s", file, fileerr.Cause(err))
	}
	return &ckptfmt.Tensor{DType: array.DType, Shape: array.Shape, Data: array.Data, Strings: array.Strings}, nil
}

// constantTensor makes a tensor of a number, a truth value, a string or a list.
func constantTensor(value any, p graph.Placeholder) (*ckptfmt.Tensor, error) {
	items, shape := []any{value}, []int64(nil)
	if list, ok := value.([]any); ok {
		items, shape = list, []int64{int64(len(list))}
	}
	t := &ckptfmt.Tensor{DType: p.DType, Shape: shape}
	for _, item := range items {
		v, isBool := item.(bool)
		n, isNumber := config.NumberOf(item)
		switch {
		case isBool && p.DType == tfpb.DataType_DT_BOOL:
			t.Data = append(t.Data, map[bool]byte{true: 1}[v])
		case isNumber && appendNumberAs(t, n):
		default:
			return nil, fmt.Errorf("%s cannot be fed to the placeholder %s, which takes %s", config.DescribeValue(item), p.Name, describePlaceholder(p))
		}
	}
	return t, nil
}

// appendNumberAs appends a number to a tensor in the tensor's type. It reports
// false when that type cannot hold it.
func appendNumberAs(t *ckptfmt.Tensor, v float64) bool {
	whole := v == math.Trunc(v) && math.Abs(v) <= 1<<53
	switch t.DType {
	case tfpb.DataType_DT_FLOAT:
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(float32(v)))
	case tfpb.DataType_DT_DOUBLE:
		t.Data = binary.LittleEndian.AppendUint64(t.Data, math.Float64bits(v))
	case tfpb.DataType_DT_INT64:
		t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(int64(v)))
		return whole
	case tfpb.DataType_DT_INT32:
		t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(int32(v)))
		return whole && math.Abs(v) <= math.MaxInt32
	case tfpb.DataType_DT_UINT8:
		t.Data = append(t.Data, byte(v))
		return whole && v >= 0 && v <= math.MaxUint8
	default:
		return false
	}
	return true
}

// takesNumbers says whether the data can be fed to a placeholder.
func takesNumbers(p graph.Placeholder) error {
	probe := &ckptfmt.Tensor{DType: p.DType}
	if !appendNumberAs(probe, 0) {
		return fmt.Errorf("the data are numbers, the placeholder %s takes %s", p.Name, describePlaceholder(p))
	}
	return nil
}

// shapeFor returns the shape in which examples of n numbers are fed: that of the
// placeholder after the batch, if its size is n.
func shapeFor(p graph.Placeholder, n int, batch int64) ([]int64, error) {
	if p.Shape.UnknownRank {
		return []int64{batch, int64(n)}, nil
	}
	dims, size, free := p.Shape.Dims, int64(1), -1
	if len(dims) == 0 || dims[0] >= 0 && dims[0] != batch {
		return nil, fmt.Errorf("batches of %d cannot be fed to the placeholder %s, which takes %s", batch, p.Name, describePlaceholder(p))
	}
	shape := append([]int64{batch}, dims[1:]...)
	for i, d := range shape[1:] {
		if d < 0 && free < 0 {
			free = i + 1
		} else if d >= 0 && size <= int64(n) {
			size *= d
		}
	}
	if free > 0 && size > 0 {
		shape[free] = int64(n) / size
		size *= shape[free]
	}
	if size != int64(n) {
		return nil, fmt.Errorf("examples of %d numbers cannot be fed to the placeholder %s, which takes %s", n, p.Name, describePlaceholder(p))
	}
	return shape, nil
}

// maker makes what is fed of a batch.
type maker = func(in program.Batch) (*ckptfmt.Tensor, error)

// sourceOf returns a source that picks n numbers of each example.
func sourceOf(p graph.Placeholder, n int, batch int, pick func(in program.Batch, out *ckptfmt.Tensor) error) (maker, error) {
	if err := takesNumbers(p); err != nil {
		return nil, err
	}
	if _, err := shapeFor(p, n, int64(batch)); err != nil {
		return nil, err
	}
	out := &ckptfmt.Tensor{DType: p.DType}
	return func(in program.Batch) (*ckptfmt.Tensor, error) {
		shape, err := shapeFor(p, n, in.Features.Shape[0])
		if err != nil {
			return nil, err
		}
		out.Shape, out.Data = shape, out.Data[:0]
		if err := pick(in, out); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		return out, nil
	}, nil
}

func featureSource(p graph.Placeholder, data *dataset.Dataset) (maker, error) {
	return sourceOf(p, data.Features, data.BatchSize(), func(in program.Batch, out *ckptfmt.Tensor) error {
		return copyNumbers(out, in.Features, 0, 1)
	})
}

// weightSource feeds the weights of the examples.
func weightSource(p graph.Placeholder, data *dataset.Dataset) (maker, error) {
	if !data.HasWeights() {
		return nil, errors.New("the data have no weights; set data.weight or data.class_weights")
	}
	return sourceOf(p, 1, data.BatchSize(), func(in program.Batch, out *ckptfmt.Tensor) error {
		if p.Shape.UnknownRank {
			out.Shape = out.Shape[:1]
		}
		return copyNumbers(out, in.Weight, 0, 1)
	})
}

func labelSource(p graph.Placeholder, data *dataset.Dataset) (maker, error) {
	return sourceOf(p, 1, data.BatchSize(), func(in program.Batch, out *ckptfmt.Tensor) error {
		if p.Shape.UnknownRank {
			out.Shape = out.Shape[:1]
		}
		return copyNumbers(out, in.Label, 0, 1)
	})
}

func oneHotSource(p graph.Placeholder, data *dataset.Dataset) (maker, error) {
	return sourceOf(p, data.Classes, data.BatchSize(), func(in program.Batch, out *ckptfmt.Tensor) error {
		for labels := in.Label.Data; len(labels) > 0; labels = labels[8:] {
			class := binary.LittleEndian.Uint64(labels)
			for c := range data.Classes {
				appendNumberAs(out, map[bool]float64{true: 1}[uint64(c) == class])
			}
		}
		return nil
	})
}

// columnSource feeds one column of the features.
func columnSource(name string, p graph.Placeholder, data *dataset.Dataset) (maker, error) {
	column := slices.Index(data.Columns, name)
	if column < 0 {
		hint := "; set data.header = true to name columns"
		if data.Columns != nil {
			hint = "; the columns are " + strings.Join(data.Columns, ", ")
		}
		return nil, fmt.Errorf("the data have no column %q%s", name, hint)
	}
	return sourceOf(p, 1, data.BatchSize(), func(in program.Batch, out *ckptfmt.Tensor) error {
		return copyNumbers(out, in.Features, column, data.Features)
	})
}

// copyNumbers appends every stride-th number of in, from one on, to out.
func copyNumbers(out, in *ckptfmt.Tensor, from, stride int) error {
	if out.DType == in.DType && stride == 1 {
		out.Data = append(out.Data, in.Data...)
		return nil
	}
	numbers, err := inspect.NumbersOf(in)
	if err != nil {
		return err
	}
	n, err := dtype.NumElements(in.Shape)
	if err != nil {
		return err
	}
	for i := from; i < int(n); i += stride {
		if v := numbers.At(i); !appendNumberAs(out, v) {
			return fmt.Errorf("%v is not a whole number that %s holds", v, dtype.Name(out.DType))
		}
	}
	return nil
}
