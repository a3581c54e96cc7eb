package summary

import (
	"fmt"
	"strings"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

// defaultThresholds is the number of thresholds of PRCurveOf.
const defaultThresholds = 201

// PRCurve holds the points of a precision-recall curve, one for each threshold
// from 0 to 1.
type PRCurve struct {
	TruePositives, FalsePositives []float64
	TrueNegatives, FalseNegatives []float64
	Precision, Recall             []float64
}

// leastCount keeps the quotient of two empty counts at zero.
const leastCount = 1e-7

// PRCurveOf computes the curve of predictions, each from 0 to 1. Weights may be
// nil. Thresholds is the number of thresholds; 0 means 201.
func PRCurveOf(labels []bool, predictions, weights []float32, thresholds int) (*PRCurve, error) {
	if thresholds == 0 {
		thresholds = defaultThresholds
	}
	if thresholds < 2 {
		return nil, fmt.Errorf("tfevents: PR curve: %d thresholds, want 2 at least", thresholds)
	}
	if len(labels) != len(predictions) || weights != nil && len(weights) != len(labels) {
		return nil, fmt.Errorf("tfevents: PR curve: %d labels, %d predictions, %d weights", len(labels), len(predictions), len(weights))
	}
	c := &PRCurve{TruePositives: make([]float64, thresholds), FalsePositives: make([]float64, thresholds)}
	for i, p := range predictions {
		if !(p >= 0 && p <= 1) {
			return nil, fmt.Errorf("tfevents: PR curve: prediction %d is %v, want 0 to 1", i, p)
		}
		w := 1.0
		if weights != nil {
			w = float64(weights[i])
		}
		at := int(p * float32(thresholds-1))
		if labels[i] {
			c.TruePositives[at] += w
		} else {
			c.FalsePositives[at] += w
		}
	}
	for i := thresholds - 2; i >= 0; i-- {
		c.TruePositives[i] += c.TruePositives[i+1]
		c.FalsePositives[i] += c.FalsePositives[i+1]
	}
	c.complete()
	return c, nil
}

// complete computes the rest from the positives.
func (c *PRCurve) complete() {
	for i, tp := range c.TruePositives {
		fp := c.FalsePositives[i]
		fn := c.TruePositives[0] - tp
		c.TrueNegatives = append(c.TrueNegatives, c.FalsePositives[0]-fp)
		c.FalseNegatives = append(c.FalseNegatives, fn)
		c.Precision = append(c.Precision, tp/max(leastCount, tp+fp))
		c.Recall = append(c.Recall, tp/max(leastCount, tp+fn))
	}
}

// tagEnd ends the tags that TensorFlow gives curves.
const tagEnd = "/pr_curves"

// Value returns the curve for TensorBoard's PR curve plugin. TensorFlow's own
// tags end in /pr_curves; TensorBoard shows the part before that as the name of
// the curve, as with TensorFlow's helper. [Describe] sets another name.
func (c *PRCurve) Value(tag string) (*tfpb.Summary_Value, error) {
	n := len(c.TruePositives)
	rows := make([]float32, 0, 6*n)
	for _, row := range [][]float64{
		c.TruePositives, c.FalsePositives, c.TrueNegatives, c.FalseNegatives, c.Precision, c.Recall,
	} {
		if len(row) != n {
			return nil, fmt.Errorf("tfevents: PR curve %q: rows of %d and %d points", tag, n, len(row))
		}
		for _, v := range row {
			rows = append(rows, float32(v))
		}
	}
	content := tfproto.Marshal(&tbpb.PrCurvePluginData{NumThresholds: uint32(n)})
	v := PluginTensor(tag, PluginPRCurves, content, floatTensor(shapeProto(6, int64(n)), rows))
	return Describe(v, strings.TrimSuffix(tag, tagEnd), ""), nil
}
