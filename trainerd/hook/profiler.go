package hook

import (
	"context"
	"fmt"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Profiler is a Hook that traces a step every N steps or seconds: its
// RunMetadata goes to the events file, as run "step_N", and timeline-N.json,
// which Chrome's about:tracing and Perfetto show, to a directory. The first step
// is not traced, because it also makes the session ready.
type Profiler struct {
	Funcs
	Trigger
	// OutputDir is where the timelines go. Default: the logdir.
	OutputDir string

	attachment
	step   int64 // after the last call
	known  bool  // step is
	traced bool  // the call under way is
}

// Begin finds where to write.
func (h *Profiler) Begin(ctx context.Context, s session.Session) error {
	if err := h.check("Profiler", &h.Trigger); err != nil {
		return err
	}
	if _, ok := h.run.Session().(session.OptionsRunner); !ok {
		return fmt.Errorf("Profiler: a session of type %T does not trace its steps", h.run.Session())
	}
	if h.OutputDir == "" {
		h.OutputDir = h.run.Logdir()
	}
	if h.OutputDir == "" {
		return fmt.Errorf("Profiler: there is no logdir; set OutputDir")
	}
	step, err := h.run.GlobalStep(ctx)
	if err != nil {
		return fmt.Errorf("Profiler: %w", err)
	}
	h.step, h.known, h.fired = step, false, false
	return h.Funcs.Begin(ctx, s)
}

// BeforeRun asks for a trace when one is due after the next step.
func (h *Profiler) BeforeRun(context.Context, *RunContext) (*RunArgs, error) {
	h.traced = h.known && h.isDue(h.step+1)
	if !h.traced {
		return nil, nil
	}
	return &RunArgs{Options: &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_FULL_TRACE}}, nil
}

// AfterRun writes the trace.
func (h *Profiler) AfterRun(ctx context.Context, c *RunContext, v *RunValues) error {
	if !h.known {
		h.known = true
		h.Due(h.step) // the time begins with the first call, the count before it
	}
	step, err := c.StepAfter(ctx)
	if err != nil {
		return err
	}
	h.step = step
	if !h.traced {
		return nil
	}
	h.Due(step)
	return h.save(ctx, step, v.Metadata)
}

func (h *Profiler) save(ctx context.Context, step int64, meta *tfpb.RunMetadata) error {
	if len(meta.GetStepStats().GetDevStats()) == 0 {
		h.logger().Warn("the session returned no trace of a step that it was told to trace", "step", step)
		return nil
	}
	timeline, err := chromeTrace(meta.GetStepStats())
	if err != nil {
		return fmt.Errorf("Profiler: %w", err)
	}
	name := filepath.Join(h.OutputDir, fmt.Sprintf("timeline-%d.json", step))
	if err := h.write(name, timeline); err != nil {
		h.logger().Warn("the timeline could not be written", "file", name, "err", err) // no reason to end a training
	}
	events := h.run.Events()
	if events == nil {
		return nil
	}
	encoded, err := proto.Marshal(meta)
	if err != nil {
		return err
	}
	return events.Add(ctx, func(w *tfevents.FileWriter) error {
		return w.AddRunMetadata(ctx, fmt.Sprint("step_", step), encoded, step)
	})
}

// write writes a file of OutputDir, which may be a folder of a logdir that was deleted: the run
// makes that again.
func (h *Profiler) write(name string, data []byte) error {
	if err := atomicfile.MkdirAllSync(h.run.FS(), h.OutputDir); err != nil {
		return err
	}
	return atomicfile.WriteFile(h.run.FS(), name, data)
}
