package program

import (
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// rateInputs is which input of an op that changes variables is the learning
// rate, without the beginning of the op's name that says how the variable is
// kept.
var rateInputs = map[string]int{
	"ApplyGradientDescent": 1, "ApplyProximalGradientDescent": 1, "SparseApplyProximalGradientDescent": 1,
	"ApplyMomentum": 2, "ApplyKerasMomentum": 2, "SparseApplyMomentum": 2, "SparseApplyKerasMomentum": 2,
	"ApplyAdagrad": 2, "ApplyAdagradV2": 2, "SparseApplyAdagrad": 2, "SparseApplyAdagradV2": 2,
	"ApplyProximalAdagrad": 2, "SparseApplyProximalAdagrad": 2,
	"ApplyAdagradDA": 4, "SparseApplyAdagradDA": 5,
	"ApplyAdadelta": 3, "SparseApplyAdadelta": 3,
	"ApplyAdam": 5, "ApplyAdamWithAmsgrad": 6, "ApplyAdaMax": 4,
	"ApplyRMSProp": 3, "SparseApplyRMSProp": 3, "ApplyCenteredRMSProp": 4, "SparseApplyCenteredRMSProp": 4,
	"ApplyFtrl": 4, "ApplyFtrlV2": 4, "SparseApplyFtrl": 5, "SparseApplyFtrlV2": 5,
	"ApplyAddSign": 2, "ApplyPowerSign": 2,
}

// LearningRate is a tensor that a step uses as its learning rate.
type LearningRate struct {
	Tensor string
	DType  tfpb.DataType
}

// LearningRates returns the learning rates of a step, by name.
func (p *Program) LearningRates() ([]LearningRate, error) {
	g, err := p.Graph()
	if err != nil {
		return nil, err
	}
	var all []LearningRate
	updates := Ancestors(g, p.Train, func(n *tfpb.NodeDef) bool {
		_, ok := rateInputs[rateOp(n)]
		return ok
	})
	for _, name := range updates {
		n, err := g.Node(name)
		if err != nil {
			return nil, err
		}
		at := rateInputs[rateOp(n)]
		if at >= len(n.GetInput()) {
			continue
		}
		if t, err := graph.ParseTensorName(n.GetInput()[at]); err == nil && !t.Control {
			all = append(all, LearningRate{t.Tensor(), n.GetAttr()["T"].GetType()})
		}
	}
	slices.SortFunc(all, func(a, b LearningRate) int { return strings.Compare(a.Tensor, b.Tensor) })
	return slices.Compact(all), nil
}

// rateOp returns the op of a node as rateInputs has it.
func rateOp(n *tfpb.NodeDef) string { return strings.TrimPrefix(n.GetOp(), "Resource") }
