package integrity

import (
	"compress/zlib"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// What compressed files begin with, whatever is in them: R's .rds, joblib's dumps, weights.pt.zst.
const (
	gzipMagic = "\x1f\x8b\x08"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// isZlib reports whether a file that may be a pickle is the stream that joblib makes of one.
func isZlib(ext, head string) bool {
	mayBe := slices.Contains([]string{".pkl", ".pickle", ".joblib", ".z"}, ext)
	return mayBe && len(head) > 1 && head[0] == 'x' && (int(head[0])<<8|int(head[1]))%31 == 0
}

// isCompressed reports whether a file is compressed in a form that shows whether it is whole.
func isCompressed(ext, head string) bool {
	return strings.HasPrefix(head, gzipMagic) || strings.HasPrefix(head, zstdMagic) || isZlib(ext, head)
}

// checkCompressed reads a file to its end, where its checksum is.
func checkCompressed(from io.Reader, head string) error {
	var r io.Reader
	var err error
	switch {
	case strings.HasPrefix(head, gzipMagic):
		r, err = gzip.NewReader(from)
	case strings.HasPrefix(head, zstdMagic):
		var d *zstd.Decoder
		if d, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)); err == nil {
			defer d.Close()
		}
		r = d
	default:
		r, err = zlib.NewReader(from)
	}
	if err == nil {
		_, err = io.CopyBuffer(onlyWriter{io.Discard}, r, make([]byte, entryPiece))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errCut
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrUnknownDictionary):
		return nil // which says nothing about the file
	}
	return err
}
