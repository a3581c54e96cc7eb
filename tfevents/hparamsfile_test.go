package tfevents

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// TestWriteHParams replaces values; those of a run are the last written, though
// the run's other file is there already.
func TestWriteHParams(t *testing.T) {
	dir := t.TempDir()
	w := newTestWriter(t, dir, &FileWriterOptions{Host: "h", Now: (&clock{at(1700000000)}).now})
	if err := w.AddScalar(t.Context(), "loss", 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{0.1, 0.75} {
		if err := WriteHParams(dir, map[string]any{"rate": rate}, "trial", at(1699999999)); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteHParams(dir, map[string]any{"rate": struct{}{}}, "", at(1)); err == nil {
		t.Error("no error for a value of an odd type")
	}
	runs, err := FindRuns(os.DirFS(dir), ".")
	if err != nil || len(runs) != 1 || len(runs[0].Files) != 2 || runs[0].Files[0] != hparamsFileName {
		t.Fatal(runs, err)
	}
	s := readInMemory(os.DirFS(dir), runs[0], nil).Lookup("_hparams_/session_start_info")
	if s == nil {
		t.Fatal("no hyperparameters")
	}
	data := new(tbpb.HParamsPluginData)
	if err := proto.Unmarshal(s.Metadata.GetPluginData().GetContent(), data); err != nil {
		t.Fatal(err)
	}
	if got := data.GetSessionStartInfo().GetHparams()["rate"].GetNumberValue(); got != 0.75 {
		t.Errorf("rate = %v", got)
	}
}

// TestGoldenLogMessage compares with the event of TensorFlow's own writer.
func TestGoldenLogMessage(t *testing.T) {
	for _, e := range eventstest.Events(t, eventstest.ReadFile(t, "events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost")) {
		//lint:ignore SA1019 that is what is tested
		m := e.GetLogMessage()
		if m == nil {
			continue
		}
		dir := t.TempDir()
		w := newTestWriter(t, dir, &FileWriterOptions{Now: (&clock{at(e.GetWallTime())}).now})
		if err := w.AddLogMessage(t.Context(), m.GetLevel(), m.GetMessage(), e.GetStep()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, file := onlyFile(t, dir)
		if got := eventstest.Events(t, file)[1]; !proto.Equal(got, e) {
			t.Errorf("%v, want %v", got, e)
		}
		return
	}
	t.Fatal("the fixture holds no message")
}

// TestGraphPluginValues gives the graph page what it asks for: a string, and the
// byte 1 in the metadata.
func TestGraphPluginValues(t *testing.T) {
	for name, v := range map[string]*tfpb.Summary_Value{
		summary.PluginRunMetadata: summary.RunMetadata("a", []byte("x")), summary.PluginKerasModel: summary.KerasModel("a", "x"), summary.PluginRunMetadataGraph: summary.RunMetadataGraph("a", []byte("x")),
	} {
		p := v.GetMetadata().GetPluginData()
		if p.GetPluginName() != name || string(p.GetContent()) != "1" || string(v.GetTensor().GetStringVal()[0]) != "x" {
			t.Errorf("%s: %v", name, v)
		}
	}
}
