package runtime_test

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// writing is a graph that writes a point of a curve: its step and its value are fed.
func writing() *tfpb.GraphDef {
	def := &tfpb.GraphDef{}
	add := func(op, name string, attrs map[string]*tfpb.AttrValue, inputs ...string) {
		def.Node = append(def.Node, &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Attr: attrs})
	}
	text := func(name, v string) {
		t := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: &tfpb.TensorShapeProto{}, StringVal: [][]byte{[]byte(v)}}
		add("Const", name, map[string]*tfpb.AttrValue{"dtype": typeAttr(tfpb.DataType_DT_STRING), "value": {Value: &tfpb.AttrValue_Tensor{Tensor: t}}})
	}
	text("logdir", "curves")
	text("suffix", ".v2")
	text("tag", "loss")
	n := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: &tfpb.TensorShapeProto{}, IntVal: []int32{10}}
	add("Const", "ten", map[string]*tfpb.AttrValue{"dtype": typeAttr(tfpb.DataType_DT_INT32), "value": {Value: &tfpb.AttrValue_Tensor{Tensor: n}}})
	add("Placeholder", "step", map[string]*tfpb.AttrValue{"dtype": typeAttr(tfpb.DataType_DT_INT64)})
	add("Placeholder", "value", map[string]*tfpb.AttrValue{"dtype": typeAttr(tfpb.DataType_DT_FLOAT)})
	add("SummaryWriter", "writer", map[string]*tfpb.AttrValue{"shared_name": textAttr("w"), "container": textAttr("")})
	add("CreateSummaryFileWriter", "open", nil, "writer", "logdir", "ten", "ten", "suffix")
	add("WriteScalarSummary", "write", map[string]*tfpb.AttrValue{"T": typeAttr(tfpb.DataType_DT_FLOAT)}, "writer", "step", "tag", "value")
	add("FlushSummaryWriter", "flush", nil, "writer")
	return def
}

// writingLife is a session that writes events below a folder.
func writingLife(t *testing.T, dir string, from *session.Snapshot) (s *runtime.Session, write func(value float32, first, last int64)) {
	t.Helper()
	s, err := runtime.New(writing(), &runtime.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	ctx := context.Background()
	if from != nil {
		if err := s.Restore(ctx, from.State); err != nil {
			t.Fatal(err)
		}
	}
	run := func(feeds map[string]*ckptfmt.Tensor, op string) {
		t.Helper()
		if _, err := s.Run(ctx, feeds, nil, []string{op}); err != nil {
			t.Fatal(err)
		}
	}
	run(nil, "open")
	return s, func(value float32, first, last int64) {
		t.Helper()
		for step := first; step <= last; step++ {
			run(map[string]*ckptfmt.Tensor{"step:0": ckptfmt.Scalar(step), "value:0": ckptfmt.Scalar(value)}, "write")
		}
	}
}

// curve returns the steps and values of the curve as a reader of events files shows it.
func curve(t *testing.T, dir string, mode tfevents.Purge) (steps []int64, values []float64) {
	t.Helper()
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil || len(runs) != 1 || runs[0].Name != "curves" {
		t.Fatalf("runs %v, %v", runs, err)
	}
	d := tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: mode})
	for p, v := range d.Scalars(d.Lookup("loss")) {
		steps, values = append(steps, p.Step), append(values, v)
	}
	return steps, values
}

// TestSummaryWriterResumes: what was written before a checkpoint is in the file with it,
// what was written after it is written again by the session that resumes from it, and by
// one that is put back to it while it runs.
func TestSummaryWriterResumes(t *testing.T) {
	dir := t.TempDir()
	s, write := writingLife(t, dir, nil)
	write(1, 0, 3)
	snap, err := s.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if steps, _ := curve(t, dir, tfevents.PurgeExact); !cmp.Equal(steps, []int64{0, 1, 2, 3}) {
		t.Fatalf("with the checkpoint are steps %v", steps)
	}
	write(2, 4, 7)
	if _, err := s.Run(t.Context(), nil, nil, []string{"flush"}); err != nil {
		t.Fatal(err)
	}
	s, write = writingLife(t, dir, snap) // the first one was killed
	write(3, 4, 6)
	if err := s.Restore(t.Context(), snap.State); err != nil {
		t.Fatal(err)
	}
	write(4, 4, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		steps, values := curve(t, dir, mode)
		if !cmp.Equal(steps, []int64{0, 1, 2, 3, 4, 5}) || !cmp.Equal(values, []float64{1, 1, 1, 1, 4, 4}) {
			t.Errorf("mode %d: steps %v, values %v", mode, steps, values)
		}
	}
}

// TestSummaryWriterOfObserver: an evaluation leaves no events, and no file.
func TestSummaryWriterOfObserver(t *testing.T) {
	dir := t.TempDir()
	s, write := writingLife(t, dir, nil)
	o := s.Observer()
	defer o.Close()
	feeds := map[string]*ckptfmt.Tensor{"step:0": ckptfmt.Scalar(int64(1)), "value:0": ckptfmt.Scalar(float32(1))}
	if _, err := o.Run(t.Context(), feeds, nil, []string{"write"}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("an observer left %v, %v", entries, err)
	}
	write(2, 0, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, values := curve(t, dir, tfevents.PurgeExact); !cmp.Equal(values, []float64{2}) {
		t.Errorf("values %v", values)
	}
}
