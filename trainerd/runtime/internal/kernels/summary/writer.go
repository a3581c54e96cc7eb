package summary

import (
	"cmp"
	"path/filepath"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The ops of tf.summary in graphs, which write events themselves. What writes belongs to
// a step, as reads of variables do: a checkpoint is taken before it or after it.
const writes = exec.Stateful | exec.ReadsState

var writerOps = exec.OpTable{
	"SummaryWriter":           {Build: buildWriter},
	"CreateSummaryFileWriter": {Flags: exec.Stateful, Build: exec.WithoutAttrs(createFileWriter)},
	"FlushSummaryWriter":      {Flags: exec.Stateful, Build: exec.WithoutAttrs(flushWriter)},
	"CloseSummaryWriter":      {Flags: exec.Stateful, Build: exec.WithoutAttrs(closeWriter)},
	"WriteSummary":            {Types: exec.ValueTypes, Flags: writes, Build: exec.WithoutAttrs(writing(2, taggedTensor))},
	"WriteScalarSummary":      {Types: exec.RealTypes | exec.Halves, Flags: writes, Build: exec.WithoutAttrs(writing(2, taggedScalar))},
	"WriteHistogramSummary":   {Types: exec.RealTypes | exec.Halves, Flags: writes, Build: exec.WithoutAttrs(writing(2, histogramValues))},
	"WriteImageSummary":       {Flags: writes, Build: buildWriteImages},
	"WriteAudioSummary":       {Flags: writes, Build: buildWriteSounds},
	"WriteRawProtoSummary":    {Flags: writes, Build: exec.WithoutAttrs(writing(2, rawValues))},
	"WriteGraphSummary":       {Flags: writes, Build: exec.WithoutAttrs(writeGraph)},
	"ImportEvent":             {Flags: writes, Build: exec.WithoutAttrs(importEvent)},
}

// writer is the resource of a SummaryWriter. It writes nowhere before a file writer is
// made for it, and after that is closed.
type writer struct {
	name    string
	journal atomic.Pointer[journal]
}

func buildWriter(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.HandleKernel(b.Resource("summary_writer", func(name string) any { return &writer{name: name} })), nil
}

func writerOf(c *exec.KernelContext) (*writer, error) {
	w, ok := c.In(0).Value.(*writer)
	if !ok {
		return nil, c.Invalid("input 0 is not a summary writer")
	}
	return w, nil
}

// opened returns the writer's journal.
func opened(c *exec.KernelContext) (*journal, error) {
	w, err := writerOf(c)
	if err != nil {
		return nil, err
	}
	j := w.journal.Load()
	if j == nil {
		return nil, c.Errorf(tfpb.Code_NOT_FOUND, "summary writer %q has no file; run its CreateSummaryFileWriter first", w.name)
	}
	return j, nil
}

// createFileWriter opens a writer, unless it is open. How many events may wait is not
// the graph's choice: they are in the file after a second.
func createFileWriter(c *exec.KernelContext) error {
	w, err := writerOf(c)
	if err != nil || w.journal.Load() != nil {
		return err
	}
	logdir, err := c.StringScalar(1, "the logdir")
	if err != nil {
		return err
	}
	suffix, err := c.StringScalar(4, "the suffix")
	if err != nil {
		return err
	}
	dir, err := c.ResolvePath(cmp.Or(logdir, "."))
	if err != nil {
		return c.FileError(err)
	}
	j := c.Journal(filepath.Clean(logdir), func(next int64) exec.Journal {
		return newJournal(dir, suffix, next, c.Printer().Logger)
	})
	w.journal.CompareAndSwap(nil, j.(*journal))
	return nil
}

func flushWriter(c *exec.KernelContext) error {
	j, err := opened(c)
	if err != nil {
		return err
	}
	return j.Flush(c.Context())
}

// closeWriter takes the file from a writer. The file itself may be other writers' too.
func closeWriter(c *exec.KernelContext) error {
	w, err := writerOf(c)
	if err != nil {
		return err
	}
	j := w.journal.Swap(nil)
	if j == nil {
		return nil
	}
	return j.Flush(c.Context())
}

// valuesOf makes the values of a summary from the inputs from one on, the first is mostly
// the tag.
type valuesOf func(c *exec.KernelContext, from int) ([]*tfpb.Summary_Value, error)

// writing returns the kernel that writes a summary, of the step that is input 1.
func writing(from int, values valuesOf) exec.Kernel {
	return func(c *exec.KernelContext) error {
		list, err := values(c, from)
		if err != nil {
			return err
		}
		step := int64(c.MustInt(1, "the step"))
		return write(c, step, func(l *eventlog.Log) error { return l.AddSummary(c.Context(), summary.New(list...), step) })
	}
}

// write adds an event to the writer's file. An observer's run leaves none.
func write(c *exec.KernelContext, step int64, add func(*eventlog.Log) error) error {
	if c.Observes() {
		return nil
	}
	j, err := opened(c)
	if err != nil {
		return err
	}
	c.MarkEffect()
	if err := j.write(c.Context(), step, add); err != nil {
		return c.FileError(err)
	}
	return nil
}

// taggedTensor takes a tensor, its tag and its metadata.
func taggedTensor(c *exec.KernelContext, from int) ([]*tfpb.Summary_Value, error) {
	return tensorValue(c, from+1, from, from+2)
}

func taggedScalar(c *exec.KernelContext, from int) ([]*tfpb.Summary_Value, error) {
	tag, err := c.StringScalar(from, "the tag")
	if err != nil {
		return nil, err
	}
	x := c.In(from + 1)
	if x.NumElements() != 1 {
		return nil, c.Invalid("the value must be one number, not %s", x.Describe())
	}
	return []*tfpb.Summary_Value{{Tag: tag, Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: float32(elem.RealAt(x, 0))}}}, nil
}

func buildWriteImages(b *exec.OpConstruction) (exec.Kernel, error) {
	limit := b.Int("max_images")
	checkPixels(b)
	return writing(2, func(c *exec.KernelContext, from int) ([]*tfpb.Summary_Value, error) {
		bad := defaultBadColor
		copy(bad[:], c.In(from+2).Data)
		return imageValues(c, from, limit, bad)
	}), nil
}

func buildWriteSounds(b *exec.OpConstruction) (exec.Kernel, error) {
	limit := b.Int("max_outputs")
	return writing(2, func(c *exec.KernelContext, from int) ([]*tfpb.Summary_Value, error) {
		rate, err := sampleRate(c, from+2)
		if err != nil {
			return nil, err
		}
		return soundValues(c, from, limit, rate)
	}), nil
}

// rawValues takes encoded summaries.
func rawValues(c *exec.KernelContext, from int) ([]*tfpb.Summary_Value, error) {
	var all tfpb.Summary
	for _, encoded := range c.In(from).Strings {
		if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(encoded, &all); err != nil {
			return nil, c.Invalid("input %d is not a summary: %v", from, err)
		}
	}
	return all.GetValue(), nil
}

func writeGraph(c *exec.KernelContext) error {
	encoded, err := c.StringScalar(2, "the graph")
	if err != nil {
		return err
	}
	if err := proto.Unmarshal([]byte(encoded), new(tfpb.GraphDef)); err != nil {
		return c.Invalid("input 2 is not a graph: %v", err)
	}
	step := int64(c.MustInt(1, "the step"))
	return writeEvent(c, &tfpb.Event{Step: step, What: &tfpb.Event_GraphDef{GraphDef: []byte(encoded)}})
}

func importEvent(c *exec.KernelContext) error {
	encoded, err := c.BytesScalar(1, "the event")
	if err != nil {
		return err
	}
	e := new(tfpb.Event)
	if err := proto.Unmarshal(encoded, e); err != nil {
		return c.Invalid("input 1 is not an event: %v", err)
	}
	return writeEvent(c, e)
}

func writeEvent(c *exec.KernelContext, e *tfpb.Event) error {
	if e.GetWallTime() == 0 {
		e.WallTime = tfevents.WallTime(time.Now())
	}
	return write(c, e.GetStep(), func(l *eventlog.Log) error {
		return l.Add(c.Context(), func(w *tfevents.FileWriter) error { return w.AddEvent(c.Context(), e) })
	})
}
