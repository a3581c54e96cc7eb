// Package picture decodes JPEG, PNG, GIF and BMP files to the same pixels as TensorFlow's ops, and
// encodes PNG files.
//
// The layouts of JPEG files are in package jpeg. The others have little-endian numbers,
// PNG files big-endian ones:
//
//	PNG   89 "PNG" 0D 0A 1A 0A, then chunks: length, name, data, CRC-32 of name and data
//	      IHDR  width, height: uint32 | bits of a sample | 1 a palette, 2 colours, 4 alpha |
//	            0 | 0 | 1 interlaced
//	      PLTE, tRNS, gAMA, sRGB  palette, transparency, gamma; IDAT lines, compressed: each
//	            the number of a filter and samples; IEND  the end
//
//	GIF   "GIF87a" or "GIF89a"
//	      width, height: uint16 | flags: 80 a table of 3 << (flags&7 + 1) bytes | 2 bytes
//	      table of colours
//	      21 F9, 4, flags: 1 a transparent colour | delay | its number, 0   before a frame
//	      21, kind, blocks of up to 255 bytes, 0                            other extensions
//	      2C, left, top, width, height: uint16 | flags: 80 a table, 40 interlaced
//	          table | bits of a colour | blocks of LZW codes, 0             a frame
//	      3B                                                                the end
//
//	BMP   0   "BM" and 8 bytes that are not used
//	      10  where the pixels begin: int32
//	      18  width, height: int32, the height negative if the first line is the upper one
//	      28  bits of a pixel: 8, 24 or 32
//	          lines of blue, green, red and perhaps alpha, each filled up to 4 bytes
//
// TensorFlow reads GIF and BMP files in a simple way, which is followed here: the canvas of a GIF
// file is as large as its largest frame, frames lie on the ones before them whatever they say on
// disposal, and those after the first damaged one are left out; a BMP file with 8 bits is gray,
// without its table of colours, and must end after its pixels. PNG files are read as libpng does,
// which ignores damage in chunks that it does not need.
//
// A declared size is compared with the length of the data, and with the caller's limit,
// before memory is allocated. Functions may be called by several goroutines at once.
// Facts are from the PNG, GIF89a and BMP descriptions of W3C, CompuServe and Microsoft.
package picture

import (
	"bytes"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/internal/jpeg"
)

// Format is a format of files.
type Format int

// The formats.
const (
	Unknown Format = iota
	JPEG
	PNG
	GIF
	BMP
)

func (f Format) String() string {
	return [...]string{"unknown format", "JPEG", "PNG", "GIF", "BMP"}[f]
}

// Error is the error of a file that is damaged, or not supported.
type Error struct {
	Format Format
	Reason string
}

func (e *Error) Error() string { return e.Format.String() + ": " + e.Reason }

func failed(f Format, format string, args ...any) error {
	return &Error{f, fmt.Sprintf(format, args...)}
}

// FormatOf returns the format of a file by its first bytes.
func FormatOf(data []byte) Format {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xd8, 0xff}):
		return JPEG
	case bytes.HasPrefix(data, []byte(pngSignature)):
		return PNG
	case bytes.HasPrefix(data, []byte("GIF8")):
		return GIF
	case bytes.HasPrefix(data, []byte("BM")):
		return BMP
	}
	return Unknown
}

// Config is what the head of a file says.
type Config struct {
	Format
	Frames        int // of GIF files those that are whole, as far as that shows without their pixels; else 1
	Width, Height int
	Channels      int // in the file
}

// Image is a decoded picture.
type Image struct {
	Config          // Channels are those that were asked for
	Bits   int      // of a sample: 8 or 16
	Pix    []uint8  // rows of pixels of Channels samples, of 8 bits
	Pix16  []uint16 // the same, of 16 bits
}

// ReadConfig reads the head of a file.
func ReadConfig(data []byte) (Config, error) {
	switch f := FormatOf(data); f {
	case JPEG:
		c, err := jpeg.ReadConfig(data)
		return Config{f, 1, c.Width, c.Height, c.Components}, err
	case PNG:
		p, err := readPNG(data, true)
		if err != nil {
			return Config{}, err
		}
		return Config{f, 1, p.width, p.height, p.channels()}, nil
	case GIF:
		g, err := readGIF(data)
		if err != nil {
			return Config{}, err
		}
		return g.config(), nil
	case BMP:
		b, err := readBMP(data)
		return b.Config, err
	}
	return Config{}, failed(Unknown, "want JPEG, PNG, GIF or BMP")
}

// Decode decodes a file whose head [ReadConfig] has read, to some number of
// channels, or to those of the file if channels is 0. JPEG files are decoded as by
// DecodeJpeg without attributes.
func Decode(data []byte, channels int) (*Image, error) { return decode(data, channels, math.MaxInt) }

// DecodeFirst is Decode of the first frame alone. Its canvas is still as large as the
// largest frame.
func DecodeFirst(data []byte, channels int) (*Image, error) { return decode(data, channels, 1) }

func decode(data []byte, channels, frames int) (*Image, error) {
	switch FormatOf(data) {
	case JPEG:
		m, err := jpeg.Decode(data, jpeg.Options{Channels: channels, Fancy: true, Method: jpeg.Fast})
		if err != nil {
			return nil, err
		}
		return &Image{Config: Config{JPEG, 1, m.Width, m.Height, m.Channels}, Bits: 8, Pix: m.Pix}, nil
	case PNG:
		return decodePNG(data, channels)
	case GIF:
		return decodeGIF(data, channels, frames)
	case BMP:
		return decodeBMP(data, channels)
	}
	return nil, failed(Unknown, "want JPEG, PNG, GIF or BMP")
}
