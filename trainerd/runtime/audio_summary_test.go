package runtime_test

import (
	"encoding/binary"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// The header of a sound has a whole number for its rate: the nearest one, the even
// one of two, and 1 at least, as TensorFlow writes it.
func TestRateInTheHeaderOfASound(t *testing.T) {
	p := newPipe(t)
	rate := p.node("Placeholder", nil, "dtype", tfpb.DataType_DT_FLOAT)
	sound := p.node("Placeholder", nil, "dtype", tfpb.DataType_DT_FLOAT)
	made := p.node("AudioSummaryV2", []string{p.text("tag"), sound, rate})
	s, err := runtime.New(p.def, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	samples, err := ckptfmt.FromValues([]int64{1, 2}, []float32{0.1, 0.2})
	if err != nil {
		t.Fatal(err)
	}
	run := func(hertz float32) ([]*ckptfmt.Tensor, error) {
		return s.Run(t.Context(), map[string]*ckptfmt.Tensor{sound: samples, rate: ckptfmt.Scalar(hertz)}, []string{made}, nil)
	}
	for hertz, want := range map[float32]uint32{0.3: 1, 0.5: 1, 2.5: 2, 2.62: 3, 3.5: 4, 8000.5: 8000, 8001.5: 8002, 44099.7: 44100} {
		out, err := run(hertz)
		if err != nil {
			t.Fatal(err)
		}
		summary := new(tfpb.Summary)
		if err := proto.Unmarshal(out[0].Strings[0], summary); err != nil {
			t.Fatal(err)
		}
		audio := summary.GetValue()[0].GetAudio()
		if got := binary.LittleEndian.Uint32(audio.GetEncodedAudioString()[24:]); got != want || audio.GetSampleRate() != hertz {
			t.Errorf("%v Hz: %d in the header, %v in the message; want %d and the rate", hertz, got, audio.GetSampleRate(), want)
		}
	}
	for _, hertz := range []float32{0, -1, float32(math.NaN()), float32(math.Inf(1))} {
		if _, err := run(hertz); err == nil {
			t.Errorf("%v Hz is accepted", hertz)
		}
	}
}
