package dataset

import (
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// buffer is examples as tensors have them: little-endian, one after the other. w
// stays empty where examples have no weights.
type buffer struct{ x, y, w []byte }

// tensors are the buffers of the examples that are given out.
type tensors struct {
	x, y, w ckptfmt.Tensor
	rows    buffer
}

func newTensors(features int, o Options) tensors {
	return tensors{
		x: ckptfmt.Tensor{DType: o.featureType(), Shape: []int64{0, int64(features)}},
		y: ckptfmt.Tensor{DType: o.labelType(), Shape: []int64{0}},
		w: ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{0}},
	}
}

// begin makes room for so many other examples.
func (t *tensors) begin(rows int) {
	t.rows = buffer{t.x.Data[:0], t.y.Data[:0], t.w.Data[:0]}
	for _, tensor := range []*ckptfmt.Tensor{&t.x, &t.y, &t.w} {
		tensor.Shape[0] = int64(rows)
	}
}

// give returns the examples that were put into t.
func (d *Dataset) give(t *tensors) (x, y *ckptfmt.Tensor, err error) {
	t.x.Data, t.y.Data, t.w.Data = t.rows.x, t.rows.y, t.rows.w
	d.weights = &t.w
	return &t.x, &t.y, nil
}

// Weights returns the weights of the examples last returned by [Dataset.Batch]
// or [Dataset.Test], float32 [rows]; nil unless the data have weights. Their
// mean is 1 over the training part, and also over the test part. Weights of
// classes have no effect on the test part.
func (d *Dataset) Weights() *ckptfmt.Tensor {
	if !d.HasWeights() {
		return nil
	}
	return d.weights
}
