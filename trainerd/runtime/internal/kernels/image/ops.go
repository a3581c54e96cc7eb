// Package image has the kernels of the ops on images: decoding, resizing,
// cropping, colours, and boxes in images.
package image

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		resizeOps.WithHalves("ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad"),
		resizeBicubicOps.WithHalves("ResizeBicubic", "ResizeArea"),
		cropAndResizeOps.WithHalves("CropAndResize", "CropAndResizeGradImage"),
		projectiveOps,
		scaleAndTranslateOps,
		colorsOps,
		glimpseOps,
		decodeImageOps,
		encodeImageOps,
		jpegOps,
		drawBoxesOps,
		nonMaxSuppressionOps,
		combinedSuppressionOps,
		sampleBoundingBoxOps,
	}
}
