package tfrecord

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// Inflate returns the plain stream of a TFRecord file, and how it was
// compressed, for programs that accept files of either kind. A stream that
// begins with a record is plain; otherwise its first bytes decide. Reading it
// returns the errors of the compressed stream.
func Inflate(r io.Reader) (io.Reader, Compression) {
	src := bufio.NewReader(r)
	head, _ := src.Peek(HeaderSize) // an error comes again when it is read
	kind := detect(head)
	if kind == Uncompressed {
		return src, kind
	}
	return &decompressor{src: src, kind: kind}, kind
}

// detect finds out how a stream is compressed by its first bytes. Neither format can be detected
// with certainty: what looks like zlib may be a record with a damaged header, but not if the upper
// half of its length is zero.
func detect(head []byte) Compression {
	if len(head) < HeaderSize {
		return detectEmpty(head)
	}
	if crc32c.Masked(head[:lengthSize]) == binary.LittleEndian.Uint32(head[lengthSize:]) {
		return Uncompressed
	}
	switch {
	case head[0] == 0x1f && head[1] == 0x8b && head[2] == deflate:
		return GZIP
	case beginsAsZlib(head) && binary.LittleEndian.Uint32(head[4:]) != 0:
		return ZLIB
	}
	return Uncompressed
}

// deflate is the method of both formats.
const deflate = 8

// detectEmpty finds out how a stream shorter than a record's header is compressed: only an empty
// zlib stream is so short, and it ends with the checksum of nothing.
func detectEmpty(stream []byte) Compression {
	const shortest = 8
	if len(stream) >= shortest && beginsAsZlib(stream) && bytes.HasSuffix(stream, []byte{0, 0, 0, 1}) {
		return ZLIB
	}
	return Uncompressed
}

// beginsAsZlib reports whether the first two bytes may be those of a zlib
// stream.
func beginsAsZlib(head []byte) bool {
	return head[0]&0x0f == deflate && head[0]>>4 <= 7 && binary.BigEndian.Uint16(head)%31 == 0
}
