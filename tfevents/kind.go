package tfevents

import (
	"bytes"
	"slices"

	"github.com/trainerd/trainerd/tfevents/summary"
)

// kind remembers whether all values of a series are scalars in a usual form.
type kind struct {
	odd  bool   // one is not, or the series shows something else
	meta []byte // encoded metadata that was seen to be that of a scalar
}

// note records the next value.
func (k *kind) note(v *valueScan) {
	switch {
	case k.odd || v.form == formSimple:
	case v.form == formOther || v.tensor == nil:
		k.odd = true
	case v.meta == nil || bytes.Equal(v.meta, k.meta):
		// A tensor without metadata is what the first of its tag was.
	case v.outline().GetMetadata().GetPluginData().GetPluginName() == summary.PluginScalars:
		k.meta = slices.Clone(v.meta)
	default:
		k.odd = true
	}
}

// AllFloat32 reports whether the series holds scalars and each value is just a single float32: then
// [Point.Scalar] has the value of every point, and no value needs to be read to find its kind.
func (s *Series) AllFloat32() bool { return !s.kind.odd }
