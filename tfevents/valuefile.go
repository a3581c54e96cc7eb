package tfevents

import (
	"fmt"
	"io"
	"io/fs"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// valueFile is the file from which the last value was read. If it cannot seek, for example because
// it is compressed, reading continues from there if the next value comes later.
type valueFile struct {
	name    string
	f       fs.File
	records *tfrecord.Reader // of a file that cannot seek
}

func (v *valueFile) close() {
	if v.f != nil {
		v.f.Close()
	}
	v.f, v.records = nil, nil
}

// valueBufferSize is how much is read for a value at first: most are small.
const valueBufferSize = 4 << 10

// event returns the event at an offset of a file of the run.
func (v *valueFile) event(x *RunData, name string, offset int64) (*tfpb.Event, error) {
	r, err := v.at(x, name, offset)
	if err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	data, err := r.Next()
	if err == io.EOF {
		return nil, fmt.Errorf("tfevents: %s has lost the record at offset %d: %w", name, offset, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
	}
	return decodeEvent(name, offset, data)
}

// at returns a reader whose next record is the one at an offset.
func (v *valueFile) at(x *RunData, name string, offset int64) (*tfrecord.Reader, error) {
	if v.name != name || v.records != nil && v.records.Offset() > offset {
		v.close()
	}
	if v.f == nil {
		f, err := x.fsys.Open(name)
		if err != nil {
			return nil, err
		}
		v.f, v.name = f, name
	}
	s, ok := v.f.(io.Seeker)
	if !ok {
		return v.forward(x, offset), nil
	}
	if _, err := s.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	r := tfrecord.NewReader(v.f)
	r.Name, r.MaxSize, r.SkipDataCRC, r.Buffer = name, x.o.MaxSize, x.o.Purge == PurgeDataServer, valueBufferSize
	r.StartAt(offset, sizeOf(v.f))
	return r, nil
}

// forward reads up to an offset of a file that cannot seek.
func (v *valueFile) forward(x *RunData, offset int64) *tfrecord.Reader {
	if v.records == nil {
		v.records = x.o.records(v.f, v.name, 0)
	}
	for v.records.Offset() < offset {
		if _, err := v.records.Next(); err != nil && !skippable(err) {
			break // which the next call says again
		}
	}
	return v.records
}

// sizeOf returns the size of a file, 0 if it is not known.
func sizeOf(f fs.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
