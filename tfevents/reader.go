package tfevents

import (
	"io"
	"iter"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Reader reads events from one stream. It is not safe for concurrent use.
// The exported fields of the embedded RecordReader may be set before the first
// read.
type Reader struct {
	RecordReader
}

// NewReader returns a Reader that reads from r. It reads ahead.
func NewReader(r io.Reader) *Reader { return &Reader{RecordReader: *NewRecordReader(r)} }

// NextEvent returns the next event. Errors are those of [RecordReader.Next],
// and a *[CorruptError] with PartEvent for an intact record that holds no event:
// the next call continues after it.
func (r *Reader) NextEvent() (*tfpb.Event, error) {
	at := r.Offset()
	data, err := r.Next()
	if err != nil {
		return nil, err
	}
	return decodeEvent(r.Name, at, data)
}

// decodeEvent decodes the data of the record at the given offset of a file.
func decodeEvent(name string, at int64, data []byte) (*tfpb.Event, error) {
	e := new(tfpb.Event)
	if err := proto.Unmarshal(data, e); err != nil {
		return nil, &CorruptError{Name: name, Offset: at, Part: PartEvent, Lost: int64(RecordSize(len(data))), Err: err}
	}
	return e, nil
}

// Events returns the events up to the end of what there is. An error ends
// them, except one that [CorruptError.Skippable] allows to be skipped: a loop
// that continues after it gets the events after the damage. A clean end gives no
// error. Ranging again continues where the last loop stopped, also when the
// stream has grown.
func (r *Reader) Events() iter.Seq2[*tfpb.Event, error] {
	return func(yield func(*tfpb.Event, error) bool) {
		for {
			e, err := r.NextEvent()
			if err == io.EOF {
				return
			}
			damage, ok := err.(*CorruptError)
			if !yield(e, err) || err != nil && !(ok && damage.Skippable()) {
				return
			}
		}
	}
}
