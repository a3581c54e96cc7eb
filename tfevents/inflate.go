package tfevents

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// Inflate returns the plain stream of a TFRecord file, and how it was
// compressed, for programs that are given files of either kind. A stream that
// begins with a record is plain; otherwise it is what it looks like. Reading it
// gives the errors of the compressed stream.
func Inflate(r io.Reader) (io.Reader, Compression) {
	src := bufio.NewReader(r)
	head, _ := src.Peek(headerSize) // an error comes again when it is read
	kind := detect(head)
	if kind == Uncompressed {
		return src, kind
	}
	return &decompressor{src: src, kind: kind}, kind
}

// detect tells how a stream is compressed by its first bytes. Neither format
// can be known for certain: what looks like zlib may be a record with a
// damaged header, but not if the upper half of its length is zero.
func detect(head []byte) Compression {
	if len(head) < headerSize || crc32c.Masked(head[:lengthSize]) == binary.LittleEndian.Uint32(head[lengthSize:]) {
		return Uncompressed
	}
	const deflate = 8
	switch {
	case head[0] == 0x1f && head[1] == 0x8b && head[2] == deflate:
		return GZIP
	case head[0]&0x0f == deflate && head[0]>>4 <= 7 && binary.BigEndian.Uint16(head)%31 == 0 &&
		binary.LittleEndian.Uint32(head[4:]) != 0:
		return ZLIB
	}
	return Uncompressed
}
