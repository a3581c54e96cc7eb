package wav

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

func file() []byte { return Encode([]float32{0, 0.5, -1, 1, 0.25, -0.25}, 2, 8000) }

// chunk returns a chunk of a file.
func chunk(name string, data ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte(name), uint32(len(data))), data...)
}

func TestRoundTrip(t *testing.T) {
	s, err := Decode(file())
	if err != nil || s.Channels != 2 || s.Rate != 8000 || s.Frames() != 3 {
		t.Fatalf("got %+v, %v", s, err)
	}
	var got []float32
	for i := range s.Frames() {
		got = append(got, s.At(i, 0), s.At(i, 1))
	}
	if want := []float32{0, 0.5, -1, 32767. / 32768, 0.25, -0.25}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestChunks has chunks that TensorFlow skips.
func TestChunks(t *testing.T) {
	whole := file()
	const samples = 36 // where the chunk of samples begins
	for name, data := range map[string][]byte{
		"before":     slices.Concat(whole[:samples], chunk("LIST", 1, 2, 3), whole[samples:]),
		"after":      slices.Concat(whole, chunk("LIST", 1, 2, 3)),
		"cut after":  slices.Concat(whole, []byte("LIST\xff\xff\xff\xff")),
		"other RIFF": slices.Concat([]byte("RIFF\x01\x00\x00\x00"), whole[8:]),
	} {
		s, err := Decode(data)
		if err != nil || !bytes.Equal(s.Data, whole[samples+8:]) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// TestDamage has files that TensorFlow refuses, too, among them one cut at every byte.
func TestDamage(t *testing.T) {
	whole := file()
	with := func(at int, b ...byte) []byte {
		data := bytes.Clone(whole)
		copy(data[at:], b)
		return data
	}
	damaged := map[string][]byte{
		"no RIFF": with(0, 'r'), "no WAVE": with(8, 'w'), "no format": with(12, 'x'), "format of 40 bytes": with(16, 40), "floats": with(20, 3),
		"no channels": with(22, 0), "8 bits": with(34, 8), "bytes a second": with(28, 1), "bytes a frame": with(32, 3), "4 GiB": with(40, 255, 255, 255, 255),
		"no samples": with(36, 'x'), "two": slices.Concat(whole, chunk("data", 1, 2, 3, 4)), "a byte is left": append(bytes.Clone(whole), 0),
	}
	for end := range whole {
		damaged["cut"+string(rune('0'+end))] = whole[:end]
	}
	for name, data := range damaged {
		s, err := Decode(data)
		if located := (*FormatError)(nil); !errors.As(err, &located) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file())
	f.Add(slices.Concat(file(), chunk("LIST", 1, 2, 3)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		if len(s.Data) > len(data) || s.Frames() > 0 && s.At(s.Frames()-1, s.Channels-1) > 1 {
			t.Errorf("%d bytes of samples in a file of %d", len(s.Data), len(data))
		}
	})
}
