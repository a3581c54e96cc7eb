package dataserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// blobChunk is how much of a blob one message of an answer holds.
const blobChunk = 8 << 20

// blobKey names a blob. Its text can be part of an URL.
type blobKey struct {
	experiment, run, tag string
	step                 int64
	index                int
	wall                 uint64 // bits of the time of the point, if there are several at the step, else 0
}

// String returns the key as TensorBoard's own data server formats it, followed by the time if there
// is one.
func (k blobKey) String() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	parts := []any{k.experiment, k.run, k.tag, k.step, k.index}
	if k.wall != 0 {
		parts = append(parts, k.wall)
	}
	_ = e.Encode(parts) // strings and numbers: it cannot fail
	return base64.RawURLEncoding.EncodeToString(bytes.TrimSpace(b.Bytes()))
}

func parseBlobKey(text string) (k blobKey, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return k, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return k, err
	}
	into := []any{&k.experiment, &k.run, &k.tag, &k.step, &k.index, &k.wall}
	if n := len(parts); n != len(into) && n != len(into)-1 {
		return k, fmt.Errorf("has %d parts; want %d or %d", n, len(into)-1, len(into))
	}
	for i, p := range parts {
		if err := json.Unmarshal(p, into[i]); err != nil {
			return k, err
		}
	}
	return k, nil
}

func (s *Server) readBlob(req *tbdata.ReadBlobRequest, stream grpc.ServerStream) error {
	key, err := parseBlobKey(req.GetBlobKey())
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "blob_key %q: %v", req.GetBlobKey(), err)
	}
	blob, err := s.findBlob(key, &budget{left: s.sending.small, small: true})
	if err == nil {
		return sendBlob(stream, blob, nil)
	}
	if !errors.Is(err, errLarge) {
		return err
	}
	t, err := s.sending.take(stream.Context())
	if err != nil {
		return err
	}
	if blob, err = s.findBlob(key, new(budget)); err == nil {
		t.sent(len(blob))
		err = sendBlob(stream, blob, t)
	}
	if err != nil {
		t.end()
	}
	return err
}

// sendBlob sends a blob in parts. The slot of a large blob ends when its last part, which follows
// all others, is on the wire.
func sendBlob(stream grpc.ServerStream, blob []byte, t *slot) error {
	for {
		n := min(len(blob), blobChunk)
		m := &tbdata.ReadBlobResponse{Data: blob[:n]}
		blob = blob[n:]
		if t != nil && len(blob) == 0 {
			return stream.SendMsg(&largeAnswer{m, t})
		}
		if err := stream.SendMsg(m); err != nil || len(blob) == 0 {
			return err
		}
	}
}

// findBlob reads a blob from the file that holds it.
func (s *Server) findBlob(key blobKey, budget *budget) (blob []byte, err error) {
	err = status.Errorf(codes.NotFound, "no blob %d at step %d of tag %q in run %q", key.index, key.step, key.tag, key.run)
	s.store.view(key.run, func(x *tfevents.RunData) {
		series := x.Lookup(key.tag)
		if series == nil || series.Metadata.GetDataClass() != tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE {
			return
		}
		if blobs, failed := blobsAt(x, series, key, budget); failed != nil {
			err = failed
		} else if key.index >= 0 && key.index < len(blobs) {
			blob, err = blobs[key.index], nil
		}
	})
	return blob, err
}

// blobsAt reads the blobs that a key names, those of the last point if several match.
func blobsAt(x *tfevents.RunData, series *tfevents.Series, key blobKey, budget *budget) (blobs [][]byte, err error) {
	var at []tfevents.Point
	for p := range series.Points() {
		if p.Step == key.step && (key.wall == 0 || key.wall == math.Float64bits(p.WallTime)) {
			at = append(at, p)
		}
	}
	for _, p := range slices.Backward(at) {
		if err := budget.need(p.Size()); err != nil {
			return nil, err
		}
		v, err := x.Value(p)
		if err != nil {
			return nil, status.Errorf(codes.Unavailable, "%v", err)
		}
		if blobs := decode.Blobs(v); blobs != nil {
			return blobs, nil
		}
	}
	return nil, nil
}
