package jpeg

import (
	"errors"
	"fmt"
	"slices"
)

// Method is an inverse transform.
type Method int

// The transforms.
const (
	Accurate Method = iota // libjpeg's JDCT_ISLOW
	Fast                   // libjpeg's JDCT_IFAST
)

// Options say what to make of a file. The zero value decodes at full size, without
// interpolation, with the channels of the file, and refuses truncated files.
type Options struct {
	Channels int // 1, 3, or 0 for 1 if the file has one component and else 3
	Ratio    int // 1, 2, 4 or 8: by how much the picture is made smaller; 0 is 1
	Method   Method
	Fancy    bool // interpolate components with fewer samples
	// Recover has the lines that a truncated file lacks made up as libjpeg does.
	Recover bool
	// AcceptableFraction is the share of lines, from 0 to 1, that must be there.
	// The others are black.
	AcceptableFraction float32
}

// Config is what the frame header says.
type Config struct {
	Width, Height, Components int
}

// Image is a decoded picture: rows of pixels of Channels bytes.
type Image struct {
	Width, Height, Channels int
	Pix                     []byte
}

// FormatError is the error of a file that is damaged or of a kind that is not
// supported.
type FormatError struct {
	Offset int // of the segment
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("JPEG, offset %d: %s", e.Offset, e.Reason)
}

// ErrTruncated is the error of a file that ends before its last line.
var ErrTruncated = errors.New("JPEG data ends before the last line of the picture")

// Size returns the size of the picture at a ratio.
func (c Config) Size(ratio int) (width, height int) {
	return ceilDiv(c.Width, ratio), ceilDiv(c.Height, ratio)
}

// ReadConfig reads a file up to the frame header.
func ReadConfig(data []byte) (Config, error) {
	d := decoder{data: data}
	if err := d.readUntilFrame(); err != nil {
		return Config{}, err
	}
	return Config{d.width, d.height, len(d.comps)}, nil
}

// Decode decodes a file.
func Decode(data []byte, o Options) (*Image, error) {
	return DecodeTo(data, o, func(width, height, channels int) []byte { return make([]byte, width*height*channels) })
}

// DecodeTo is Decode into memory for a picture of some size, which room returns.
func DecodeTo(data []byte, o Options, room func(width, height, channels int) []byte) (*Image, error) {
	if o.Ratio == 0 {
		o.Ratio = 1
	}
	d := decoder{data: data, Options: o}
	if err := d.readUntilFrame(); err != nil {
		return nil, err
	}
	if err := d.chooseColors(); err != nil {
		return nil, err
	}
	if err := d.scale(); err != nil {
		return nil, err
	}
	d.memory = takeMemory()
	defer d.memory.giveBack()
	err := d.readScans()
	lines := d.outHeight
	if errors.Is(err, ErrTruncated) {
		lines, err = d.linesOf(d.rowsDone), nil
		if o.AcceptableFraction <= 0 || float32(lines)/float32(d.outHeight) < min(1, o.AcceptableFraction) {
			return nil, ErrTruncated
		}
	}
	if err != nil {
		return nil, err
	}
	img := &Image{Width: d.outWidth, Height: d.outHeight, Channels: d.channels, Pix: room(d.outWidth, d.outHeight, d.channels)}
	d.render(img, lines)
	clear(img.Pix[lines*d.outWidth*d.channels:])
	return img, nil
}

// linesOf returns how many lines libjpeg gives out when the given rows of MCUs are
// complete: where lines are interpolated vertically, the last group of a row waits
// for the next row.
func (d *decoder) linesOf(rows int) int {
	if d.progressive || rows == 0 {
		return 0
	}
	lines := rows * d.maxV * d.minScaled
	if d.needsContext() && rows < d.mcusY {
		lines -= d.maxV
	}
	return min(lines, d.outHeight)
}

// decoder is the state of one decoding.
type decoder struct {
	Options
	data []byte
	at   int // next byte to read

	width, height int
	progressive   bool
	comps         []*component
	maxH, maxV    int
	mcusX, mcusY  int
	quant         [4]*[64]uint16
	huff          [2][4]*huffman // DC, AC
	restart       int            // MCUs between restarts
	jfif, adobe   bool
	transform     byte // of Adobe's segment

	space               space
	channels            int
	minScaled           int // samples of a block's side in the picture
	outWidth, outHeight int

	memory   *memory
	bits     bitReader
	eobRun   int
	scans    int // begun
	rowsDone int // rows of MCUs that the first scan has completed
	lastGood int // the last row of MCUs for which the last scan had data
	wraps    int // how often a segment went on at its start
}

// memory is what decoders give back for the next one: coefficients, and samples before
// they have the size of the picture.
type memory struct {
	coef []int16
	pix  []byte
}

// memories are idle. Pictures are decoded in between garbage collections that would
// empty a pool.
var memories = make(chan *memory, 4)

// mostKept bounds the bytes of an idle memory.
const mostKept = 8 << 20

func takeMemory() *memory {
	select {
	case m := <-memories:
		return m
	default:
		return new(memory)
	}
}

func (m *memory) giveBack() {
	if 2*cap(m.coef)+cap(m.pix) > mostKept {
		return
	}
	select {
	case memories <- m:
	default:
	}
}

// coefficients returns n zeros.
func (m *memory) coefficients(n int) []int16 {
	m.coef = slices.Grow(m.coef[:0], n)[:n]
	clear(m.coef)
	return m.coef
}

// samples returns n unspecified bytes.
func (m *memory) samples(n int) []byte {
	m.pix = slices.Grow(m.pix[:0], n)[:n]
	return m.pix
}

// component is one of a picture's planes.
type component struct {
	id         byte
	h, v       int // samples in an MCU, in blocks
	table      byte
	quant      *[64]uint16 // as it was at the component's first scan
	wide, high int         // blocks that hold samples of the picture
	stride     int         // blocks of a line of coef
	coef       []int16     // 64 for each block, in natural order
	there      []uint64    // by block of a progressive file: bits of the coefficients that are not zero, in zigzag order
	known      precision   // of the first coefficients
	before     precision   // the last scan

	scaled        int // samples of a block's side after the transform
	width, height int // samples after the transform that belong to the picture
	pix           []byte
	lineBytes     int

	dc, ac *huffman // of the current scan
	pred   int
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func (d *decoder) fail(at int, format string, args ...any) error {
	return &FormatError{at, fmt.Sprintf(format, args...)}
}
