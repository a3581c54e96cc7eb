package exec

import (
	"encoding/binary"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Streams are the random streams of one object, such as an iterator, instead of the
// session's: the functions that are called for it draw the same whatever others draw.
// Each stream begins when it is first drawn from.
type Streams struct{ list []ownStream }

type ownStream struct {
	path string
	gen  philox.Generator
}

// DrawFrom has what the call calls draw from streams of its own.
func (c *KernelContext) DrawFrom(s *Streams) { c.run.streams = s }

// generator returns the generator to draw from instead of a stream of the session.
func (s *Streams) generator(of *RandomStream) *philox.Generator {
	for i := range s.list {
		if s.list[i].path == of.path {
			return &s.list[i].gen
		}
	}
	s.list = append(s.list, ownStream{of.path, SeededGenerator(of.seed, of.seed2)})
	return &s.list[len(s.list)-1].gen
}

// Len returns the number of streams.
func (s *Streams) Len() int { return len(s.list) }

// Each calls f with the path of each stream, and its position.
func (s *Streams) Each(f func(path string, position []byte)) {
	for i := range s.list {
		f(s.list[i].path, appendPosition(nil, &s.list[i].gen))
	}
}

// Add adds a stream at a position. It reports false if that is not a position.
func (s *Streams) Add(path string, position []byte) bool {
	if len(position) != positionSize {
		return false
	}
	own := ownStream{path: path}
	setPosition(&own.gen, position)
	s.list = append(s.list, own)
	return true
}

// positionSize is the size of the position of a stream: the four words of the counter
// and the two of the key.
const positionSize = 24

func appendPosition(b []byte, g *philox.Generator) []byte {
	for _, w := range g.Counter {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	for _, w := range g.Key {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func setPosition(g *philox.Generator, b []byte) {
	for i := range g.Counter {
		g.Counter[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	for i := range g.Key {
		g.Key[i] = binary.LittleEndian.Uint32(b[16+4*i:])
	}
}
