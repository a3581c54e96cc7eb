package summary

import (
	"fmt"
	"math"

	"github.com/trainerd/trainerd/internal/wav"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var audioOps = exec.OpTable{
	"AudioSummary":   {Build: buildAudioSummary},
	"AudioSummaryV2": {Build: buildAudioSummary},
}

// buildAudioSummary builds the op that makes a sound of each row of samples.
func buildAudioSummary(b *exec.OpConstruction) (exec.Kernel, error) {
	limit, fixed := b.Int("max_outputs"), b.Float("sample_rate")
	return func(c *exec.KernelContext) error {
		rate := fixed
		if c.NumInputs() > 2 {
			var err error
			if rate, err = sampleRate(c, 2); err != nil {
				return err
			}
		}
		values, err := soundValues(c, 0, limit, rate)
		if err != nil {
			return err
		}
		return emit(c, values...)
	}, nil
}

func sampleRate(c *exec.KernelContext, i int) (float64, error) {
	if c.In(i).NumElements() != 1 {
		return 0, c.Invalid("the sample rate must be one number, not %s", c.In(i).Describe())
	}
	return c.In(i).FloatAt(0), nil
}

// soundValues takes the tag and the samples, from input from on.
func soundValues(c *exec.KernelContext, from, limit int, rate float64) ([]*tfpb.Summary_Value, error) {
	tag, err := c.StringScalar(from, "the tag")
	if err != nil {
		return nil, err
	}
	x := c.In(from + 1)
	if len(x.Shape) < 2 || len(x.Shape) > 3 || !(rate > 0) || rate > math.MaxUint32 {
		return nil, c.Invalid("sounds must have the shape [n,frames] or [n,frames,channels], and a rate, not %s at %v", x.Describe(), rate)
	}
	frames, channels := x.Shape[1], 1
	if len(x.Shape) == 3 {
		channels = x.Shape[2]
	}
	var values []*tfpb.Summary_Value
	for i := range min(limit, x.Shape[0]) {
		name := tag + "/audio"
		if limit > 1 {
			name = fmt.Sprintf("%s/audio/%d", tag, i)
		}
		n := frames * channels
		values = append(values, &tfpb.Summary_Value{Tag: name, Value: &tfpb.Summary_Value_Audio{Audio: &tfpb.Summary_Audio{
			SampleRate: float32(rate), NumChannels: int64(channels), LengthFrames: int64(frames), ContentType: "audio/wav",
			EncodedAudioString: wav.Encode(exec.Elems[float32](x)[i*n:(i+1)*n], channels, headerRate(rate)),
		}}})
	}
	return values, nil
}

// headerRate is the sample rate in the sound's own header, which is a whole number.
func headerRate(rate float64) uint32 { return uint32(max(math.RoundToEven(rate), 1)) }
