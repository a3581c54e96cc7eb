package ckptfmt

import (
	"bytes"
	"errors"
	"io"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestStreamEndsEarly has a tensor whose source has fewer bytes than it should: the writer
// fails from then on, although padding would follow.
func TestStreamEndsEarly(t *testing.T) {
	const size = sumPiece + 100
	for _, given := range []int{0, sumPiece, sumPiece + 1, size} {
		w, prefix := newBundle(t, &BundleWriterOptions{Alignment: 48})
		e := &bundleEntry{dtype: tfpb.DataType_DT_UINT8, shape: []int64{size}, size: size}
		_, err := w.addStream("a", e.shape, FullSlice(1), e, bytes.NewReader(make([]byte, given)))
		finish := w.Finish()
		if short := given < size; errors.Is(err, io.ErrUnexpectedEOF) != short || !errors.Is(finish, err) {
			t.Errorf("%d of %d bytes: %v; Finish: %v", given, size, err, finish)
		}
		if r, err := OpenBundle(prefix, nil); (err == nil) != (given == size) {
			t.Errorf("%d of %d bytes: the checkpoint: %v", given, size, err)
		} else if err == nil {
			r.Close()
		}
	}
}
