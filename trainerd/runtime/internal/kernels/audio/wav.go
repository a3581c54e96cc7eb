package audio

import (
	"math"

	"github.com/trainerd/trainerd/internal/wav"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

func buildDecodeWav(b *exec.OpConstruction) (exec.Kernel, error) {
	wantChannels, wantFrames := b.Int("desired_channels"), b.Int("desired_samples")
	if wantChannels < -1 || wantFrames < -1 {
		b.Fail("desired_channels=%d, desired_samples=%d; want -1 or more", wantChannels, wantFrames)
	}
	return func(c *exec.KernelContext) error {
		if len(c.In(0).Shape) != 0 {
			return c.Invalid("the file has shape %s; want a scalar", exec.ShapeString(c.In(0).Shape))
		}
		s, err := wav.Decode(c.In(0).Strings[0])
		if err != nil {
			return c.Invalid("the file cannot be decoded: %v", err)
		}
		frames, channels := s.Frames(), s.Channels
		if wantFrames >= 0 {
			frames = wantFrames
		}
		if wantChannels >= 0 {
			channels = wantChannels
		}
		d := exec.Elems[float32](c.Out(0, exec.Float32, frames, channels))
		clear(d)
		for i := range min(frames, s.Frames()) {
			for k := range channels {
				d[i*channels+k] = s.At(i, min(k, s.Channels-1)) // the last channel is repeated for missing ones
			}
		}
		exec.Elems[int32](c.Out(1, exec.Int32))[0] = s.Rate
		return nil
	}, nil
}

func buildEncodeWav(*exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) != 2 || x.Shape[1] < 1 || x.Shape[1] > math.MaxUint16 {
			return c.Invalid("the sound has shape %s; want [frames, channels] with 1 to %d channels", exec.ShapeString(x.Shape), math.MaxUint16)
		}
		rate, err := sampleRate(c)
		if err != nil {
			return err
		}
		if rate < 1 {
			return c.Invalid("sample_rate is %d; want more than 0", rate)
		}
		if x.NumElements() > math.MaxInt32/2 {
			return c.Invalid("the sound has %d samples; a file has at most %d", x.NumElements(), math.MaxInt32/2)
		}
		c.Out(0, exec.String).Strings[0] = wav.Encode(exec.Elems[float32](x), x.Shape[1], uint32(rate))
		return nil
	}, nil
}

// sampleRate returns input 1.
func sampleRate(c *exec.KernelContext) (int, error) {
	if len(c.In(1).Shape) != 0 {
		return 0, c.Invalid("sample_rate has shape %s; want a scalar", exec.ShapeString(c.In(1).Shape))
	}
	return c.In(1).IntAt(0), nil
}
