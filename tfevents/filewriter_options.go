package tfevents

import (
	"os"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// Defaults of [FileWriterOptions]. TensorFlow flushes every 120 s: the newest
// visible point of a curve may be that old, and a SIGKILL loses that much.
const (
	DefaultMaxQueue   = 10
	DefaultFlushEvery = time.Second
	DefaultBufferSize = 256 << 10
)

// SyncPolicy says when a [FileWriter] makes the operating system put the file
// onto the disk, so that it survives a power cut. TensorFlow never does.
type SyncPolicy int

const (
	SyncAtCheckpoints SyncPolicy = iota // with SessionLog CHECKPOINT and STOP, on Close, and every 4 MiB
	SyncAlways                          // with every write of the file
	SyncNever
)

// Overflow says what happens to an event when the queue is full because the
// disk is slower than the caller.
type Overflow int

const (
	Block      Overflow = iota // the caller waits
	DropOldest                 // the oldest waiting summary is dropped
	Sample                     // every second waiting summary is dropped
)

// FS is the file system to write to: nil means the operating system's.
type FS = atomicfile.FS

// File is a file made by the Create method of an [FS].
type File = atomicfile.File

// FileWriterOptions holds the choices of [NewFileWriter]. Zero means the
// default, a negative number switches the feature off.
type FileWriterOptions struct {
	Form   Form
	Suffix string // ends the file name; "" means ".v2" for TF2 and none otherwise
	Host   string // for the file name; "" means os.Hostname
	PID    int    // for the file name in forms that have it; 0 means os.Getpid

	// BufferSize is how many bytes are collected before the file is written
	// (default 256 KiB). MaxQueue is how many more events may be added during a
	// write (default 10); then Overflow decides.
	BufferSize int
	MaxQueue   int
	Overflow   Overflow

	// FlushEvery is how long an event may wait before it is handed to the
	// operating system (default 1 s): TensorBoard can see it then, and it
	// survives the end of this process, but not yet a power cut.
	FlushEvery time.Duration
	Sync       SyncPolicy

	// A new file begins with the first event after the current one has reached
	// MaxFileSize bytes or MaxFileAge. Both are off by default: TensorBoard's
	// data server keeps every file open.
	MaxFileSize int64
	MaxFileAge  time.Duration

	// PurgeStep, if not nil, makes a SessionLog START at that step the first
	// event: TensorBoard's Python loader then drops the events of earlier
	// files in the directory from that step on.
	PurgeStep *int64

	// FS is where the file is written; nil means the operating system's.
	FS FS

	// Now gives the time of events and of the file name. Nil means the system's
	// clock; at more than a million events per second, events may share a time,
	// for a millisecond at most.
	Now func() time.Time
}

func (o FileWriterOptions) withDefaults() (FileWriterOptions, error) {
	if o.Suffix == "" {
		o.Suffix = o.Form.defaultSuffix()
	}
	if o.PID == 0 {
		o.PID = os.Getpid()
	}
	o.FS = atomicfile.OrOS(o.FS)
	o.BufferSize = defaultInt(o.BufferSize, DefaultBufferSize)
	o.MaxQueue = defaultInt(o.MaxQueue, DefaultMaxQueue)
	if o.FlushEvery == 0 {
		o.FlushEvery = DefaultFlushEvery
	}
	if o.Now == nil {
		o.Now = new(quickClock).now
	}
	if o.Host != "" {
		return o, nil
	}
	var err error
	o.Host, err = os.Hostname()
	return o, err
}

// defaultInt returns n, or the default for zero, or zero for a negative number.
func defaultInt(n, byDefault int) int {
	if n == 0 {
		return byDefault
	}
	return max(n, 0)
}
