// Package summaryv1 makes summary values in the style of TensorFlow 1, in which
// each kind of value has its own field, as tf.compat.v1.summary writes them.
// TensorBoard shows them, and package summary/decode turns them into tensors. Package
// summary makes the values that tf.summary of TensorFlow 2 writes.
//
//	v := summaryv1.Scalar("loss", 0.25)
//	err := w.AddSummary(ctx, summary.New(v), step)
//
// The functions have no state. A [Histogram] is not safe for concurrent use.
package summaryv1

import (
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// Scalar returns a scalar, a simple_value. Values
// are stored as float32.
func Scalar(tag string, v float64) *tfpb.Summary_Value {
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: float32(v)}}
}

// Image returns an image, with the tag as given.
func Image(tag string, e summary.EncodedImage) *tfpb.Summary_Value {
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_Image{Image: &tfpb.Summary_Image{
		Height: int32(e.Height), Width: int32(e.Width), Colorspace: int32(e.Colorspace), EncodedImageString: e.Data,
	}}}
}

// Images returns a batch of images, each with its own tag: name/image/0,
// name/image/1 and so on.
func Images(name string, batch ...summary.EncodedImage) []*tfpb.Summary_Value {
	values := make([]*tfpb.Summary_Value, len(batch))
	for i, e := range batch {
		values[i] = Image(fmt.Sprintf("%s/image/%d", name, i), e)
	}
	return values
}

// Audio returns a clip of sound. TensorFlow's own tags
// end in /audio or /audio/0.
func Audio(tag string, a *summary.AudioClip) (*tfpb.Summary_Value, error) {
	wav, err := a.EncodeWAV()
	if err != nil {
		return nil, err
	}
	channels := max(a.Channels, 1)
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_Audio{Audio: &tfpb.Summary_Audio{
		SampleRate:         float32(a.SampleRate),
		NumChannels:        int64(channels),
		LengthFrames:       int64(len(a.Samples) / channels),
		EncodedAudioString: wav,
		ContentType:        "audio/wav",
	}}}, nil
}
