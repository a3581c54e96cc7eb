package tfevents

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// TestIndexOfLargeRecord indexes records that must be in memory only once.
func TestIndexOfLargeRecord(t *testing.T) {
	const size = 32 << 20
	text := summary.Text("text", strings.Repeat("x", size))
	indexLarge(t, text, summary.PluginText, size)
	images := summary.PluginTensor("images", summary.PluginImages, nil, eventstest.Strings(eventstest.Shape(4), []byte("1"), []byte("1"), make([]byte, size/2), make([]byte, size/2)))
	if x := indexLarge(t, images, summary.PluginImages, size); x.Series[0].MaxBlobs() != 4 {
		t.Errorf("the longest of the images are %d blobs, want 4", x.Series[0].MaxBlobs())
	}
}

func indexLarge(t *testing.T, v *tfpb.Summary_Value, plugin string, size uint64) *RunData {
	t.Helper()
	fsys := fstest.MapFS{"e.tfevents": {Data: fileOfValues(t, v)}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := ReadRun(fsys, Run{Name: ".", Files: []string{"e.tfevents"}}, nil)
	runtime.ReadMemStats(&after)
	if len(x.Series) != 1 || x.Series[0].Plugin() != plugin || x.Series[0].Len() != 1 {
		t.Fatalf("indexed %v", x.Series)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > size*11/10 {
		t.Errorf("a record of %d bytes took %d", size, took)
	}
	return x
}

func TestPlainSeries(t *testing.T) {
	bare := summary.Scalar("a", 1)
	bare.Metadata = nil
	for _, tc := range []struct {
		name   string
		values []*tfpb.Summary_Value
		want   bool
	}{
		{"TensorFlow 1", []*tfpb.Summary_Value{summaryv1.Scalar("a", 1), summaryv1.Scalar("a", 2)}, true},
		{"TensorFlow 2", []*tfpb.Summary_Value{summary.Scalar("a", 1), summary.Scalar("a", 2)}, true},
		{"metadata once", []*tfpb.Summary_Value{summary.Scalar("a", 1), bare}, true},
		{"both", []*tfpb.Summary_Value{summaryv1.Scalar("a", 1), summary.Scalar("a", 1)}, true},
		{"without metadata", []*tfpb.Summary_Value{bare}, false},
		{"another plugin later", []*tfpb.Summary_Value{summaryv1.Scalar("a", 1), summary.PluginTensor("a", "other", nil, bare.GetTensor())}, false},
		{"a double", []*tfpb.Summary_Value{summary.PluginTensor("a", summary.PluginScalars, nil, &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, DoubleVal: []float64{1}})}, false},
		{"text later", []*tfpb.Summary_Value{summaryv1.Scalar("a", 1), summary.Text("a", "b")}, false},
		{"described", []*tfpb.Summary_Value{summary.Describe(summaryv1.Scalar("a", 1), "name", "")}, false},
	} {
		fsys := fstest.MapFS{"e.tfevents": {Data: fileOfValues(t, tc.values...)}}
		x := ReadRun(fsys, Run{Name: ".", Files: []string{"e.tfevents"}}, nil)
		if len(x.Series) != 1 || x.Series[0].AllFloat32() != tc.want {
			t.Errorf("%s: %v", tc.name, x.Series)
		}
	}
}

func fileOfValues(t *testing.T, values ...*tfpb.Summary_Value) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewEventsWriter(&file, nil)
	for i, v := range values {
		e := &tfpb.Event{WallTime: 1, Step: int64(i), What: &tfpb.Event_Summary{Summary: summary.New(v)}}
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}
