// Package nn has the kernels of the layers of neural networks: convolutions,
// poolings, normalizations, softmax and its losses, recurrent cells, CTC.
package nn

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		inTopKOps,
		biasOps.WithHalves("BiasAdd", "BiasAddV1", "BiasAddGrad").WithIntegers("BiasAdd", "BiasAddV1", "BiasAddGrad"),
		softmaxOps.WithSteps(softmaxSteps),
		normalizationOps.WithHalves("FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
		convOps.WithHalves("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter",
			"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
		poolOps,
		poolFractionalOps,
		poolGradGradOps,
		poolArgmaxOps.WithHalves("MaxPoolWithArgmax", "MaxPoolGradWithArgmax"),
		conv3DOps,
		dilationOps,
		rnnCellOps,
		lstmOps,
		ctcOps,
		ctcBeamOps,
		fakeQuantOps,
		quantizeOps,
		imagePatchesOps,
		volumePatchesOps,
	}
}
