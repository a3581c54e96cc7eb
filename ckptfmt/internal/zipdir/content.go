package zipdir

import (
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/trainerd/trainerd/ckptfmt"
)

// DataOffset returns where the bytes of a member begin, which its own header says:
// that is read each time.
func (a *Archive) DataOffset(m *Member) (int64, error) {
	return a.DataOffsetBy(func(at int64, n int) ([]byte, error) {
		b := make([]byte, n)
		_, err := a.from.ReadAt(b, at)
		return b, err
	}, m)
}

// DataOffsetBy is [Archive.DataOffset] by way of a function that returns n bytes of the
// archive, and may read ahead.
func (a *Archive) DataOffsetBy(read func(at int64, n int) ([]byte, error), m *Member) (int64, error) {
	if m.Header > a.size-memberSize {
		return 0, fmt.Errorf("%w: the member is at %d, in a file of %d bytes", ErrFormat, m.Header, a.size)
	}
	b, err := read(m.Header, memberSize)
	if err != nil {
		return 0, noEOF(err)
	}
	if binary.LittleEndian.Uint32(b) != sigMember {
		return 0, fmt.Errorf("%w: there is no member at %d", ErrFormat, m.Header)
	}
	names := b[nameLengthAt:]
	start := m.Header + memberSize + int64(binary.LittleEndian.Uint16(names)) + int64(binary.LittleEndian.Uint16(names[2:]))
	if m.Packed > a.size-start {
		return start, fmt.Errorf("%w: the member has %d bytes at %d, the file has %d", ErrFormat, m.Packed, start, a.size)
	}
	return start, nil
}

// Open returns the content of a member, which is verified at its end.
func (a *Archive) Open(m *Member) (io.ReadCloser, error) {
	start, err := a.DataOffset(m)
	if err != nil {
		return nil, err
	}
	var from io.Reader = io.NewSectionReader(a.from, start, m.Packed)
	switch m.Method {
	case Stored:
		if m.Packed != m.Size {
			return nil, fmt.Errorf("%w: the member has %d bytes, stored as %d", ErrFormat, m.Size, m.Packed)
		}
	case Deflated:
		from = flate.NewReader(from)
	default:
		return nil, fmt.Errorf("it is compressed by method %d; only deflate is read", m.Method)
	}
	return &content{m: m, from: from, sum: crc32.NewIEEE()}, nil
}

// content reads a member.
type content struct {
	m    *Member
	from io.Reader
	sum  hash.Hash32
	n    int64
	err  error
}

func (c *content) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.from.Read(b)
	c.sum.Write(b[:n])
	if c.n += int64(n); c.n > c.m.Size {
		n, err = 0, fmt.Errorf("%w: the member has more than %d bytes", ErrFormat, c.m.Size)
	}
	if err == io.EOF {
		err = c.atEnd()
	}
	c.err = err
	return n, err
}

func (c *content) atEnd() error {
	switch got := c.sum.Sum32(); {
	case c.n < c.m.Size:
		return io.ErrUnexpectedEOF
	case got != c.m.CRC32:
		return fmt.Errorf("%w: CRC-32 is %#08x, stored is %#08x", ckptfmt.ErrChecksum, got, c.m.CRC32)
	}
	return io.EOF
}

func (c *content) Close() error { return nil }
