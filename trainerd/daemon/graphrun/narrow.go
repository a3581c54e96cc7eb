package graphrun

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// narrows reports whether values of type from are cast to what a placeholder
// takes, where all fit: numpy makes int64 of every list of integers, and
// TensorFlow's session casts it too.
func narrows(takes, from tfpb.DataType) bool {
	return takes == tfpb.DataType_DT_INT32 && from == tfpb.DataType_DT_INT64
}

// narrowed returns a value as the placeholder takes it.
func (g *graphFile) narrowed(tensor string, value *ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
	i := slices.IndexFunc(g.placeholders, func(p graph.Placeholder) bool { return p.Name == tensor })
	if i < 0 || !narrows(g.placeholders[i].DType, value.DType) {
		return value, nil
	}
	out := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT32, Shape: value.Shape, Data: make([]byte, 0, len(value.Data)/2)}
	for at := 0; at+8 <= len(value.Data); at += 8 {
		v := int64(binary.LittleEndian.Uint64(value.Data[at:]))
		if v < math.MinInt32 || v > math.MaxInt32 {
			return nil, fmt.Errorf("element %d is %d, the placeholder %s takes int32", at/8, v, tensor)
		}
		out.Data = binary.LittleEndian.AppendUint32(out.Data, uint32(v))
	}
	return out, nil
}
