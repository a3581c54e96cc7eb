package cluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// flushing is a session whose writers fail in the given ways.
type flushing struct {
	session.Session
	ran  []string
	fed  []int64 // the steps of events
	errs map[string]error
}

func (f *flushing) Run(_ context.Context, feeds map[string]*ckptfmt.Tensor, _, targets []string) ([]*ckptfmt.Tensor, error) {
	if v := feeds[eventValue]; v != nil {
		event := &tfpb.Event{}
		if err := proto.Unmarshal(v.Strings[0], event); err != nil || event.GetSessionLog().GetStatus() != tfpb.SessionLog_START {
			return nil, fmt.Errorf("the event is %v (%w)", event, err)
		}
		f.fed = append(f.fed, event.GetStep())
	}
	f.ran = append(f.ran, targets...)
	return nil, f.errs[targets[0]]
}

// TestWriters flushes each writer of a graph on its device. One that was never
// opened is nothing to report, and none that fails keeps the others from it. After a
// resume each gets a START.
func TestWriters(t *testing.T) {
	c := config.Default()
	c.Graph.Meta = "model.meta"
	c.Supervisor.IsChief = true
	def := &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "global_step", Op: "VarHandleOp"},
		{Name: "unopened", Op: "SummaryWriter"},
		{Name: "broken", Op: "SummaryWriter", Device: "/job:worker/task:0"},
		{Name: "sound", Op: "SummaryWriter"},
	}}
	var log bytes.Buffer
	p := &program.Program{Meta: &tfpb.MetaGraphDef{GraphDef: def}, GlobalStep: "global_step:0"}
	task := NewTask(c, p, slog.New(slog.NewTextHandler(&log, nil)), nil)
	placed, err := task.placed()
	if err != nil {
		t.Fatal(err)
	}
	var added []string
	for _, n := range placed.GetNode() {
		if n.GetOp() == "FlushSummaryWriter" {
			added = append(added, n.GetInput()[0]+" "+n.GetDevice())
		}
	}
	if want := []string{"unopened ", "broken /job:worker/task:0", "sound "}; !slices.Equal(added, want) {
		t.Errorf("flushed are %q, want %q", added, want)
	}
	sess := &flushing{errs: map[string]error{
		writersScope + "0/flush": &session.OpError{Code: tfpb.Code_NOT_FOUND},
		writersScope + "1/flush": &session.OpError{Code: tfpb.Code_RESOURCE_EXHAUSTED},
	}}
	task.FlushWriters(t.Context(), sess)
	if len(sess.ran) != 3 || strings.Count(log.String(), "level=WARN") != 1 {
		t.Errorf("ran %q, and logged %s", sess.ran, log.String())
	}
	for _, step := range []int64{0, 300} {
		if err := task.restartWriters(t.Context(), sess, step); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int64{0, 0, 0, 301, 301, 301}; !slices.Equal(sess.fed, want) {
		t.Errorf("the events have the steps %d, want %d", sess.fed, want)
	}
}
