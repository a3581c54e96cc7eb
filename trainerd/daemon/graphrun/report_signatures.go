package graphrun

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// Signature is a function that a SavedModel offers. The names of its tensors are
// keys, which `trainerd graph run` feeds and fetches.
type Signature struct {
	Key     string   `json:"key"`
	Method  string   `json:"method"`
	Inputs  []Tensor `json:"inputs"`
	Outputs []Tensor `json:"outputs"`
}

// hiddenKey begins the keys of signatures that only loaders use.
const hiddenKey = "__saved_model_"

func (r *Report) addSignatures(meta *tfpb.MetaGraphDef) {
	r.Signatures = []Signature{}
	for _, key := range slices.Sorted(maps.Keys(meta.GetSignatureDef())) {
		if strings.HasPrefix(key, hiddenKey) {
			continue
		}
		def := meta.GetSignatureDef()[key]
		r.Signatures = append(r.Signatures, Signature{key, def.GetMethodName(), signatureTensors(def.GetInputs()), signatureTensors(def.GetOutputs())})
	}
}

func signatureTensors(infos map[string]*tfpb.TensorInfo) []Tensor {
	all := []Tensor{}
	for _, key := range slices.Sorted(maps.Keys(infos)) {
		all = append(all, newTensor(key, infos[key].GetDtype(), graph.ShapeFromProto(infos[key].GetTensorShape())))
	}
	return all
}

func (r *Report) textSignatures(w io.Writer) {
	if len(r.Signatures) == 0 {
		return
	}
	fmt.Fprintf(w, "\nsignatures: %d\n", len(r.Signatures))
	for _, s := range r.Signatures {
		fmt.Fprintf(w, "  %s\n", s.Key)
		for _, t := range s.Inputs {
			fmt.Fprintf(w, "    input\t%s\t%s\t%s\n", t.Name, t.DType, shapeOf(t))
		}
		for _, t := range s.Outputs {
			fmt.Fprintf(w, "    output\t%s\t%s\t%s\n", t.Name, t.DType, shapeOf(t))
		}
	}
}
