package tfevents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// hparamsFileName sorts before all file names that carry a time, so that its values are the run's
// first, and no loader follows it.
const hparamsFileName = filePrefix + "0000000000.hparams"

// WriteHParams makes values the hyperparameters of the run in logdir, replacing
// earlier ones: they are in their own file, which is replaced whole. A running
// TensorBoard shows new values only after a restart. See [summary.HParams] for the
// arguments; start is when the run began, and
// should stay the same. Do not write HParams into the run's other files too.
func WriteHParams(logdir string, values map[string]any, trialID string, start time.Time) error {
	v, err := summary.HParams(values, trialID, start)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	w := NewEventsWriter(&file, &EventsWriterOptions{Now: func() time.Time { return start }})
	e := &tfpb.Event{WallTime: WallTime(start), What: &tfpb.Event_Summary{Summary: summary.New(v)}}
	_ = w.WriteEvent(e) // to memory, with texts that an event may hold
	if err := os.MkdirAll(logdir, 0o777); err != nil {
		return fmt.Errorf("tfevents: %w", err)
	}
	if err := atomicfile.WriteFile(nil, filepath.Join(logdir, hparamsFileName), file.Bytes()); err != nil {
		return fmt.Errorf("tfevents: %w", err)
	}
	return nil
}
