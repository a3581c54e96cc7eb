package integrity

import (
	"math"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

var (
	arrayType  = lazyregexp.New(`'descr': *'[<>|=]?([a-zA-Z])(\d+)(?:\[[^\]]*\])?'`) // <M8[ns]
	arrayShape = lazyregexp.New(`'shape': *\(([0-9, ]*)\)`)
)

// checkShape compares the number of bytes after the header of a .npy file with its type and shape.
// It accepts a header that is longer than what was read, or has a type without a fixed size.
func checkShape(header []byte, size int64) error {
	kind, shape := arrayType().FindSubmatch(header), arrayShape().FindSubmatch(header)
	if kind == nil || shape == nil {
		return nil
	}
	want, _ := strconv.ParseInt(string(kind[2]), 10, 64)
	if string(kind[1]) == "U" {
		want *= 4
	}
	for word := range strings.SplitSeq(string(shape[1]), ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n > 0 && want > math.MaxInt64/n {
			return errCut
		}
		want *= n
	}
	if size < want {
		return errCut
	}
	return nil
}
