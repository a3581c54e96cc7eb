package trainerd

import (
	"context"
	"errors"
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// announce opens the events file and writes what begins a session: SessionLog START, and later the
// graph. TensorBoard would drop anything before START when the run is resumed.
func (sv *Supervisor) announce(ctx context.Context, r *run, step int64) error {
	r.startStep = max(step, 0)
	kept := sv.events != nil && step > 0 // by the program, since an earlier session
	if (kept || r.prepared.Restored != "" || r.prepared.Adopted) && step >= 0 && !sv.StartAtRestoredStep {
		r.startStep++
	}
	if err := sv.checkSaver(ctx, r, step); err != nil {
		return err
	}
	sv.stats.prepared(r.prepared, step)
	hasGraph, err := sv.openWriter(r)
	if err != nil {
		return err
	}
	if r.writer != nil {
		r.events = eventlog.New(r.writer, sv.log())
		r.events.Continue(sv.events, r.startStep)
		sv.events = r.events
	}
	if r.writer != nil && step >= 0 && !sv.NoStandardServices {
		if err := sv.writeStart(ctx, r); err != nil {
			return err
		}
	}
	if err := sv.writeGraph(ctx, r, hasGraph); err != nil {
		return err
	}
	sv.makeCheckpointer(r, step)
	return nil
}

func (sv *Supervisor) writeStart(ctx context.Context, r *run) error {
	switch {
	case r.prepared.Restored != "" || r.prepared.Adopted:
		r.events.Supersede(r.stepsDone.Load() + 1)
	case r.startStep == 0: // else a model of the program's own, which continues
		r.events.Supersede(0)
	}
	return r.events.AddSession(ctx, tfpb.SessionLog_START, "", r.startStep)
}

// openWriter makes a new events file, or uses the given writer.
func (sv *Supervisor) openWriter(r *run) (hasGraph bool, err error) {
	switch {
	case sv.NoSummaryWriter:
		return false, nil
	case sv.kept != nil:
		r.writer = sv.kept
		return true, nil
	case sv.SummaryWriter != nil:
		r.writer = sv.SummaryWriter
		return false, r.writer.Reopen()
	case sv.Logdir == "":
		return false, nil
	}
	return false, logdir.Try(r.home.held, func() (err error) {
		r.writer, err = tfevents.NewFileWriter(sv.Logdir, &tfevents.FileWriterOptions{FS: r.lockedFS()})
		return err
	})
}

// closeWriter ends the events file.
func (sv *Supervisor) closeWriter(r *run) error {
	if r.writer == nil {
		return nil
	}
	ctx := context.Background()
	err := r.events.Finish(ctx)
	if sv.KeepSummaryWriter {
		sv.kept = r.writer
		return errors.Join(err, r.events.Flush(ctx))
	}
	sv.kept = nil
	if stopErr := r.events.AddSession(ctx, tfpb.SessionLog_STOP, "", 0); err == nil {
		err = stopErr
	}
	if closeErr := r.events.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("closing the events file: %w", err)
	}
	return nil
}
