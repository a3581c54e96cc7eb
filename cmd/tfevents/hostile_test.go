package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// odd would clear the screen, hide what follows, or begin a line of its own.
const odd = "x\x1b[2J\x1b[8m\u009b2J\r\nforged"

// hostileRun makes a run whose every text is odd, and returns its folder.
func hostileRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), odd)
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Host: "h\x1b[2J"})
	if err != nil {
		t.Skip(err) // this file system refuses such names
	}
	odder := summary.PluginTensor("tensor"+odd, odd, nil, &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: new(tfpb.TensorShapeProto)})
	for _, e := range []*tfpb.Event{
		{What: &tfpb.Event_Summary{Summary: summary.New(summary.Scalar("loss"+odd, 1), summary.Text("text"+odd, odd), odder)}},
		{What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_CHECKPOINT, CheckpointPath: odd, Msg: odd}}},
		{What: &tfpb.Event_FileVersion{FileVersion: odd}},
	} {
		for range 3 {
			if err := w.AddEvent(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Skip(err)
	}
	return dir
}

// TestHostileNames has names and texts of another user: no output for people, nor any message, has
// them raw.
func TestHostileNames(t *testing.T) {
	dir := hostileRun(t)
	for _, args := range [][]string{
		{"ls", dir}, {"cat", dir}, {"stat", dir}, {"check", dir}, {"verify", dir}, {"plot", dir}, {"tail", "--follow=false", dir},
		{"watch", dir, "--once", "--state", filepath.Join(t.TempDir(), "state"), "--when", "/loss/ > 0"},
		{"cat", dir + "none"}, {"repair", dir, dir}, {"export", dir, odd}, {odd}, {"ls", "--" + odd},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append([]string{"tfevents"}, args...), strings.NewReader(""), &out, &errs)
		said := out.String() + errs.String()
		for line := range strings.SplitSeq(said, "\n") {
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("%s: printed %q", args[0], line)
			}
		}
		if strings.Contains(out.String(), "\nforged") {
			t.Errorf("%s: a line begins with the end of a name:\n%s", args[0], &out)
		}
	}
}
