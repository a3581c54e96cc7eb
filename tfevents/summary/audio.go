package summary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

// AudioClip is a clip of sound.
type AudioClip struct {
	SampleRate int       // per second
	Channels   int       // 0 means 1
	Samples    []float32 // from -1 to 1, frame by frame, the channels of a frame together
	Label      string    // Markdown shown with the clip, only in the style of TensorFlow 2
}

const (
	wavHeaderSize = 44
	bytesPerInt16 = 2
)

// channels checks the clip and returns its number of channels.
func (a *AudioClip) channels() (int, error) {
	c := max(a.Channels, 1)
	switch {
	case a.SampleRate <= 0 || a.SampleRate > math.MaxInt32:
		return 0, fmt.Errorf("tfevents: audio: sample rate %d", a.SampleRate)
	case c > math.MaxUint16/bytesPerInt16:
		return 0, fmt.Errorf("tfevents: audio: %d channels", c)
	case len(a.Samples)%c != 0:
		return 0, fmt.Errorf("tfevents: audio: %d samples for %d channels", len(a.Samples), c)
	case len(a.Samples) > (math.MaxUint32-wavHeaderSize)/bytesPerInt16:
		return 0, errors.New("tfevents: audio: clip too long for a WAV file")
	}
	return c, nil
}

// EncodeWAV encodes the clip as TensorFlow does, with 16 bits per sample.
// Values beyond -1 and 1 are clipped; NaN becomes silence.
func (a *AudioClip) EncodeWAV() ([]byte, error) {
	channels, err := a.channels()
	if err != nil {
		return nil, err
	}
	size := len(a.Samples) * bytesPerInt16
	frame := channels * bytesPerInt16
	le := binary.LittleEndian
	b := make([]byte, 0, wavHeaderSize+size)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, uint32(wavHeaderSize-8+size))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16) // size of what describes the format
	b = le.AppendUint16(b, 1)  // PCM
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(a.SampleRate))
	b = le.AppendUint32(b, uint32(a.SampleRate*frame))
	b = le.AppendUint16(b, uint16(frame))
	b = le.AppendUint16(b, 8*bytesPerInt16)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(size))
	for _, s := range a.Samples {
		b = le.AppendUint16(b, uint16(toInt16(s)))
	}
	return b, nil
}

func toInt16(s float32) int16 {
	if s != s {
		return 0
	}
	v := math.Round(float64(s) * (math.MaxInt16 + 1))
	return int16(min(max(v, math.MinInt16), math.MaxInt16))
}

// Audio returns a batch of clips in the style of TensorFlow 2.
func Audio(tag string, batch ...*AudioClip) (*tfpb.Summary_Value, error) {
	values := make([][]byte, 0, 2*len(batch))
	for _, a := range batch {
		wav, err := a.EncodeWAV()
		if err != nil {
			return nil, fmt.Errorf("audio %q: %w", tag, err)
		}
		values = append(values, wav, []byte(a.Label))
	}
	content := tfproto.Marshal(&tbpb.AudioPluginData{Encoding: tbpb.AudioPluginData_WAV})
	return PluginTensor(tag, PluginAudio, content, stringTensor(shapeProto(int64(len(batch)), 2), values...)), nil
}
