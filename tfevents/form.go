package tfevents

import (
	"fmt"
	"math"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
)

// fileVersion is what every current writer puts into the first event.
const fileVersion = "brain.Event:2"

// Form names the program whose file names and first event are used.
// TensorBoard treats them all alike.
type Form int

const (
	// TF1 is tf.compat.v1.summary.FileWriter, and TensorFlow's EventsWriter in
	// C++. The file is created with the first event.
	TF1 Form = iota
	// TF2 is tf.summary.create_file_writer. In this form and the following
	// ones, the file is created together with the writer.
	TF2
	// TensorBoard is the EventFileWriter of the tensorboard package, which
	// torch.utils.tensorboard uses too.
	TensorBoard
	// TensorBoardX is the tensorboardX package.
	TensorBoardX
)

// sourceWriter returns what the first event says about its writer.
func (f Form) sourceWriter() string {
	switch f {
	case TF1, TF2:
		return "tensorflow.core.util.events_writer"
	case TensorBoard:
		return "tensorboard.summary.writer.event_file_writer"
	}
	return ""
}

// wallTime returns t as the events of that writer carry it. TensorFlow 2 counts microseconds, the
// Python writers nanoseconds, so the last bits may differ.
func (f Form) wallTime(t time.Time) float64 {
	if f == TF2 {
		return float64(t.UnixMicro()) / 1e6
	}
	return WallTime(t)
}

// firstEvent returns the event that begins a file. TensorFlow gives it the time in the file's name;
// the Python writers include the fraction of the second.
func (f Form) firstEvent(now time.Time) *tfpb.Event {
	e := &tfpb.Event{
		WallTime: WallTime(now),
		What:     &tfpb.Event_FileVersion{FileVersion: fileVersion},
	}
	if f == TF1 || f == TF2 {
		e.WallTime = math.Floor(e.WallTime)
	}
	if w := f.sourceWriter(); w != "" {
		e.SourceMetadata = &tfpb.SourceMetadata{Writer: w}
	}
	return e
}

// numbered reports whether file names carry the process and the writer's number.
func (f Form) numbered() bool { return f == TF2 || f == TensorBoard }

// fileName returns the name of a file opened at the given second.
func (f Form) fileName(seconds int64, tail string) string {
	return fmt.Sprintf("%s%010d.%s", filePrefix, seconds, tail)
}

// defaultSuffix ends the names of files written in the form f.
func (f Form) defaultSuffix() string {
	if f == TF2 {
		return ".v2"
	}
	return ""
}
