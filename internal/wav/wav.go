// Package wav reads and writes WAVE files of 16-bit samples as TensorFlow's audio ops
// do. All numbers are little-endian:
//
//	"RIFF" | length of what follows, which is not used | "WAVE"
//	"fmt " | 16 or 18 | 1 | channels | rate | bytes a second | bytes a frame | 16
//	         (2 bytes more if the length is 18)
//	"data" | length of samples | samples
//
// Other chunks may come before and after "data"; unlike in other programs' files, a chunk of odd
// length is not followed by a padding byte, because TensorFlow expects none. A sample s is the
// value s/32768.
//
// Functions may be called by several goroutines at once. Facts are from the description
// of the format by IBM and Microsoft; tests compare with TensorFlow.
package wav

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Lengths and values of the format.
const (
	headBytes  = 12 // "RIFF", length, "WAVE"
	chunkBytes = 8  // name, length
	formBytes  = 16
	formPlus   = 18
	pcm        = 1
	bits       = 16
	scale      = 1 << 15
)

// Sound is what a file holds.
type Sound struct {
	Channels int
	Rate     int32  // frames a second
	Data     []byte // samples, frame by frame, of 2 bytes
}

// FormatError is the error of a file that is damaged or not supported.
type FormatError struct {
	Offset int
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("WAVE, offset %d: %s", e.Offset, e.Reason)
}

// Frames returns the number of frames.
func (s *Sound) Frames() int { return len(s.Data) / (2 * s.Channels) }

// At returns a sample.
func (s *Sound) At(frame, channel int) float32 {
	at := 2 * (frame*s.Channels + channel)
	return float32(int16(binary.LittleEndian.Uint16(s.Data[at:]))) / scale
}

// Decode reads a file. The sound shares the file's memory.
func Decode(file []byte) (*Sound, error) {
	r := &reader{file: file}
	r.expect("RIFF")
	r.take(4)
	r.expect("WAVE")
	s := r.form()
	for r.err == nil && r.at < len(file) {
		name, n := string(r.take(4)), int(r.uint32())
		switch {
		case r.err != nil:
		case name != "data":
			r.at += min(n, len(file)-r.at)
		case s.Data != nil:
			r.fail("a second chunk of samples")
		default:
			s.Data = append([]byte{}, r.take(n/(2*s.Channels)*2*s.Channels)...)
		}
	}
	if r.err == nil && s.Data == nil {
		r.fail("no chunk of samples")
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// reader reads a file up to the first error.
type reader struct {
	file []byte
	at   int
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &FormatError{r.at, fmt.Sprintf(format, args...)}
	}
}

// take returns the next n bytes, nil if there are fewer.
func (r *reader) take(n int) []byte {
	if r.err == nil && n > len(r.file)-r.at {
		r.fail("%d bytes are left; want %d", len(r.file)-r.at, n)
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.file[r.at-n : r.at : r.at]
}

func (r *reader) expect(text string) {
	if b := r.take(len(text)); r.err == nil && string(b) != text {
		r.fail("%q; want %q", b, text)
	}
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// form reads the chunk that describes the samples.
func (r *reader) form() *Sound {
	r.expect("fmt ")
	n := r.uint32()
	if n != formBytes && n != formPlus {
		r.fail("a format chunk of %d bytes; want %d or %d", n, formBytes, formPlus)
	}
	kind, channels, rate, second, frame, depth := r.uint16(), int(r.uint16()), r.uint32(), r.uint32(), int(r.uint16()), r.uint16()
	switch {
	case r.err != nil:
	case kind != pcm:
		r.fail("format %d; want %d", kind, pcm)
	case depth != bits:
		r.fail("samples of %d bits; want %d", depth, bits)
	case channels < 1:
		r.fail("no channels")
	case frame != channels*bits/8 || second != rate*uint32(frame):
		r.fail("%d bytes a frame and %d a second, with %d channels and %d frames a second", frame, second, channels, rate)
	case n == formPlus:
		r.take(formPlus - formBytes)
	}
	return &Sound{Channels: channels, Rate: int32(rate)}
}

// Encode makes a file of samples in [-1, 1], frame by frame.
func Encode(samples []float32, channels int, rate uint32) []byte {
	le := binary.LittleEndian
	size := uint32(2 * len(samples))
	out := append(make([]byte, 0, headBytes+2*chunkBytes+formBytes+int(size)), "RIFF"...)
	out = append(le.AppendUint32(out, headBytes-chunkBytes+2*chunkBytes+formBytes+size), "WAVEfmt "...)
	out = le.AppendUint16(le.AppendUint32(out, formBytes), pcm)
	out = le.AppendUint16(out, uint16(channels))
	out = le.AppendUint32(le.AppendUint32(out, rate), rate*uint32(channels)*2)
	out = le.AppendUint16(le.AppendUint16(out, uint16(channels)*2), bits)
	out = le.AppendUint32(append(out, "data"...), size)
	for _, v := range samples {
		s := math.Round(float64(v) * scale)
		if s != s {
			s = 0 // as TensorFlow has it
		}
		out = le.AppendUint16(out, uint16(int16(min(max(s, math.MinInt16), math.MaxInt16))))
	}
	return out
}
