package jpeg

import (
	"encoding/binary"
	"fmt"
)

// maxSide is the largest width and height that libjpeg writes.
const maxSide = 65500

// EncodeOptions say how to write a file.
type EncodeOptions struct {
	Quality     int  // 0 to 100
	Progressive bool // in ten scans, or six of a gray picture; with Huffman tables of its own
	Optimize    bool // Huffman tables of its own instead of those of ITU T.81
	Subsample   bool // colour with half the samples in both directions

	DensityUnit        byte // 1: an inch, 2: a centimetre
	XDensity, YDensity uint16
	XMP                string // metadata, none if empty
}

// Encode makes a file of a picture of one channel or three, with the bytes that
// TensorFlow's encoder gives.
func Encode(m *Image, o EncodeOptions) ([]byte, error) {
	switch {
	case m.Width < 1 || m.Height < 1 || m.Width > maxSide || m.Height > maxSide:
		return nil, fmt.Errorf("JPEG: a picture of %d x %d pixels; want 1 to %d in each direction", m.Width, m.Height, maxSide)
	case m.Channels != 1 && m.Channels != 3:
		return nil, fmt.Errorf("JPEG: %d channels; want 1 or 3", m.Channels)
	case len(m.Pix) != m.Width*m.Height*m.Channels:
		return nil, fmt.Errorf("JPEG: %d bytes of pixels; want %d", len(m.Pix), m.Width*m.Height*m.Channels)
	case o.Quality < 0 || o.Quality > 100:
		return nil, fmt.Errorf("JPEG: quality is %d; want 0 to 100", o.Quality)
	case len(xmpName)+len(o.XMP) > maxSegment:
		return nil, fmt.Errorf("JPEG: %d bytes of XMP metadata; want at most %d", len(o.XMP), maxSegment-len(xmpName))
	}
	e := &encoder{EncodeOptions: o, width: m.Width, height: m.Height}
	e.arrange(m.Channels)
	for i := range e.planes {
		e.sample(m, i)
	}
	e.head()
	if o.Progressive {
		e.progressiveScans()
	} else {
		e.baselineScan()
	}
	e.out = append(e.out, 0xff, eoi)
	return e.out, nil
}

const (
	xmpName    = "http://ns.adobe.com/xap/1.0/\x00"
	maxSegment = 65533
)

// encoder is the state of one encoding.
type encoder struct {
	EncodeOptions
	out           []byte
	width, height int
	mcusX, mcusY  int
	side          int // pixels of an MCU in each direction
	planes        []*plane
	entropy       entropy
}

// plane is a component. Its blocks fill whole MCUs; those that no sample of the
// picture is in repeat the DC value of the block before them.
type plane struct {
	samples    int // blocks of an MCU in each direction: 1, or 2
	table      int // of quantization and of codes: 0 of brightness, 1 of colour
	wide, high int // blocks with samples of the picture
	stride     int // blocks of a line
	coef       []int16
	pred       int // the last DC value
}

func (p *plane) block(x, y int) []int16 {
	at := 64 * (y*p.stride + x)
	return p.coef[at : at+64 : at+64]
}

// arrange lays out the planes.
func (e *encoder) arrange(channels int) {
	most := 1
	if channels == 3 && e.Subsample {
		most = 2
	}
	e.side = 8 * most
	e.mcusX, e.mcusY = ceilDiv(e.width, e.side), ceilDiv(e.height, e.side)
	for i := range channels {
		p := &plane{samples: most, table: min(i, 1)}
		if i > 0 {
			p.samples = 1
		}
		p.wide, p.high = ceilDiv(e.width*p.samples, e.side), ceilDiv(e.height*p.samples, e.side)
		p.stride = e.mcusX * p.samples
		p.coef = make([]int16, 64*p.stride*e.mcusY*p.samples)
		e.planes = append(e.planes, p)
	}
}

// segmentOf writes a segment.
func (e *encoder) segmentOf(marker byte, data ...byte) {
	e.out = append(e.out, 0xff, marker)
	e.out = binary.BigEndian.AppendUint16(e.out, uint16(2+len(data)))
	e.out = append(e.out, data...)
}

// head writes everything before the first scan and its tables.
func (e *encoder) head() {
	e.out = append(e.out, 0xff, soi)
	d := append([]byte("JFIF\x00\x01\x01"), e.DensityUnit)
	d = binary.BigEndian.AppendUint16(d, e.XDensity)
	d = binary.BigEndian.AppendUint16(d, e.YDensity)
	e.segmentOf(app0, append(d, 0, 0)...)
	if e.XMP != "" {
		e.segmentOf(app0+1, []byte(xmpName+e.XMP)...)
	}
	for i := range min(len(e.planes), 2) {
		q := quantTable(i, e.Quality)
		d := []byte{byte(i)}
		for _, n := range natural[:64] {
			d = append(d, byte(q[n]))
		}
		e.segmentOf(dqt, d...)
	}
	d = binary.BigEndian.AppendUint16([]byte{8}, uint16(e.height))
	d = append(binary.BigEndian.AppendUint16(d, uint16(e.width)), byte(len(e.planes)))
	for i, p := range e.planes {
		d = append(d, byte(i+1), byte(p.samples<<4|p.samples), byte(p.table))
	}
	kind := byte(sof0)
	if e.Progressive {
		kind = sof2
	}
	e.segmentOf(kind, d...)
}

// standardQuant are the tables of ITU T.81, annex K, in natural order.
var standardQuant = [2][64]uint16{{
	16, 11, 10, 16, 24, 40, 51, 61,
	12, 12, 14, 19, 26, 58, 60, 55,
	14, 13, 16, 24, 40, 57, 69, 56,
	14, 17, 22, 29, 51, 87, 80, 62,
	18, 22, 37, 56, 68, 109, 103, 77,
	24, 35, 55, 64, 81, 104, 113, 92,
	49, 64, 78, 87, 103, 121, 120, 101,
	72, 92, 95, 98, 112, 100, 103, 99,
}, {
	17, 18, 24, 47, 99, 99, 99, 99,
	18, 21, 26, 66, 99, 99, 99, 99,
	24, 26, 56, 99, 99, 99, 99, 99,
	47, 66, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
	99, 99, 99, 99, 99, 99, 99, 99,
}}

// quantTable returns a table for a quality, on libjpeg's scale.
func quantTable(i, quality int) [64]uint16 {
	percent := 200 - 2*quality
	if quality < 50 {
		percent = 5000 / max(quality, 1)
	}
	t := standardQuant[i]
	for k, v := range t {
		t[k] = uint16(min(max((int(v)*percent+50)/100, 1), 255))
	}
	return t
}
