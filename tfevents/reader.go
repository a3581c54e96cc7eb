package tfevents

import (
	"io"
	"iter"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// Reader reads events from one stream. It is not safe for concurrent use.
type Reader struct {
	// Records is the underlying reader; its fields may be set before the first
	// read.
	Records *tfrecord.Reader
}

// NewReader returns a Reader that reads from r. It reads ahead.
func NewReader(r io.Reader) *Reader { return &Reader{Records: tfrecord.NewReader(r)} }

// Next returns the next event. Errors are those of [tfrecord.Reader.Next],
// and a *[tfrecord.CorruptError] with PartEvent for an intact record that holds no event:
// the next call continues after it.
func (r *Reader) Next() (*tfpb.Event, error) {
	at := r.Records.Offset()
	data, err := r.Records.Next()
	if err != nil {
		return nil, err
	}
	return decodeEvent(r.Records.Name, at, data)
}

// decodeEvent decodes the data of the record at the given offset of a file.
func decodeEvent(name string, at int64, data []byte) (*tfpb.Event, error) {
	e := new(tfpb.Event)
	if err := proto.Unmarshal(data, e); err != nil {
		return nil, &tfrecord.CorruptError{Name: name, Offset: at, Part: tfrecord.PartEvent, Lost: int64(tfrecord.Size(len(data))), Err: err}
	}
	return e, nil
}

// Events returns the events up to the current end of the stream. An error ends them,
// unless [tfrecord.CorruptError.Skippable] says that it can be skipped: a loop that
// continues after it gets the events after the damage. A clean end gives no error.
// Ranging again continues where the last loop stopped, also if the stream has grown.
func (r *Reader) Events() iter.Seq2[*tfpb.Event, error] {
	return func(yield func(*tfpb.Event, error) bool) {
		for {
			e, err := r.Next()
			if err == io.EOF {
				return
			}
			damage, ok := err.(*tfrecord.CorruptError)
			if !yield(e, err) || err != nil && !(ok && damage.Skippable()) {
				return
			}
		}
	}
}
