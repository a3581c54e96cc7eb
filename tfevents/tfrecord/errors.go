package tfrecord

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

var (
	// ErrChecksum says that bytes do not match the checksum stored with them.
	ErrChecksum = errors.New("tfrecord: checksum mismatch")
	// ErrTooLarge says that a record declares more bytes than the reader's limit.
	ErrTooLarge = errors.New("tfrecord: record larger than the limit")
	// ErrClosed says that a writer of records or events was used after Close, or a
	// [Reader] after Release.
	ErrClosed = errors.New("tfrecord: already closed")
)

// The parts of a record that a [CorruptError] names.
const (
	PartLength = "length" // the length, or its checksum
	PartData   = "data"   // the data, or its checksum
	PartEvent  = "event"  // an intact record whose data is not an Event message
)

// CorruptError describes a record that cannot be used.
//
// Whether reading can continue depends on the error. If Err is
// io.ErrUnexpectedEOF, the file ends within the record: the same call succeeds
// once the rest has been written. If Lost is above zero, the next call continues
// after the lost bytes: with PartData or PartEvent the end of the record is
// known, and with PartLength the reader has searched for the next record, if
// resync is on. Otherwise reading cannot continue.
type CorruptError struct {
	Name   string // file, "" if the reader was given none
	Offset int64  // of the record's first byte
	Part   string // PartLength, PartData or PartEvent
	Lost   int64  // bytes from Offset on that the reader skips; 0 when it cannot continue
	Err    error  // ErrChecksum, ErrTooLarge and the limit, io.ErrUnexpectedEOF, or why the event cannot be decoded
}

func (e *CorruptError) Error() string {
	name := e.Name
	if name == "" {
		name = "tfrecord"
	}
	if e.Torn() {
		return fmt.Sprintf("%s: the record at offset %d is cut off in its %s", name, e.Offset, e.Part)
	}
	lost := "what follows cannot be read"
	if e.Lost > 0 {
		lost = fmt.Sprintf("%d bytes lost", e.Lost)
	}
	cause := strings.TrimPrefix(e.Err.Error(), "tfrecord: ")
	return fmt.Sprintf("%s: damaged record at offset %d, %s: %s: %s", name, e.Offset, lost, e.Part, cause)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Torn reports whether the data ends within the record, as it does while the
// file is still being written, or after a crash of its writer.
func (e *CorruptError) Torn() bool { return e.Err == io.ErrUnexpectedEOF }

// Skippable reports whether the reader continues after the damage.
func (e *CorruptError) Skippable() bool { return e.Lost > 0 }
