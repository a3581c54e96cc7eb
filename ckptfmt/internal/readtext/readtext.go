// Package readtext reads a part of a file as a string, so that names can be cut from it
// without copies: the header of a file with a hundred thousand tensors may have tens of
// megabytes. It has no state.
package readtext

import (
	"io"
	"strings"
)

// atOnce is how much is read at once.
const atOnce = 256 << 10

// String returns the n bytes at an offset, which the caller has found to be within the
// file. It is an error matching [io.ErrUnexpectedEOF] when they are not there.
func String(from io.ReaderAt, at, n int64) (string, error) {
	var text strings.Builder
	text.Grow(int(n))
	buf := make([]byte, min(n, atOnce))
	for left := n; left > 0; left -= int64(len(buf)) {
		buf = buf[:min(left, atOnce)]
		if got, err := from.ReadAt(buf, at+n-left); got < len(buf) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
		text.Write(buf)
	}
	return text.String(), nil
}
