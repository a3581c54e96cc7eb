package dataserver

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// client asks a server over a real connection.
type client struct {
	t    *testing.T
	conn *grpc.ClientConn
}

// serve serves a directory until the test ends.
func serve(t *testing.T, o *Options) *client {
	t.Helper()
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, listen(t, server))
}

// listen has a server serve at an address until the test ends.
func listen(t *testing.T, server *Server) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String()
}

// connect returns a client that takes little of an answer before it is read.
func connect(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn}
}

func (c *client) call(method string, req, answer proto.Message) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	return c.conn.Invoke(ctx, "/"+ServiceName+"/"+method, req, answer)
}

var scalars = &tbdata.PluginFilter{PluginName: summary.PluginScalars}

// curve returns the points of a tag of a run, nil if there are none.
func (c *client) curve(run, tag string, most int64) *tbdata.ScalarData {
	c.t.Helper()
	answer := new(tbdata.ReadScalarsResponse)
	req := &tbdata.ReadScalarsRequest{PluginFilter: scalars, Downsample: &tbdata.Downsample{NumPoints: most}}
	if err := c.call("ReadScalars", req, answer); err != nil {
		c.t.Fatal(err)
	}
	for _, r := range answer.GetRuns() {
		for _, tagged := range r.GetTags() {
			if r.GetRunName() == run && tagged.GetTagName() == tag {
				return tagged.GetData()
			}
		}
	}
	return nil
}

// waitFor waits until what the server shows is as wanted.
func (c *client) waitFor(what string, is func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("the server does not show %s", what)
		}
	}
}

func (c *client) waitForSteps(run, tag string, want ...int64) {
	c.t.Helper()
	var got []int64
	c.waitFor(tag, func() bool {
		got = c.curve(run, tag, math.MaxInt32).GetStep()
		return slices.Equal(got, want)
	})
}

// appendEvents adds events to a file that may be there already.
func appendEvents(t testing.TB, name string, events ...*tfpb.Event) {
	t.Helper()
	appendTo(t, name, recordsOf(t, events...))
}

func appendTo(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

func recordsOf(t testing.TB, events ...*tfpb.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tfevents.NewEventsWriter(&b, &tfevents.EventsWriterOptions{Continue: true})
	for _, e := range events {
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func point(tag string, step int64, value float64) *tfpb.Event {
	return &tfpb.Event{WallTime: 1.7e9 + float64(step), Step: step,
		What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar(tag, value))}}
}

func TestUnsupportedLogdirs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "gs://bucket", "s3://bucket/logs", file} {
		var unsupported *UnsupportedError
		if _, err := New(&Options{Logdir: dir}); !errors.As(err, &unsupported) || unsupported.Logdir != dir {
			t.Errorf("logdir %q: %v", dir, err)
		}
	}
}

// TestLogdirThatAppears: a TensorBoard may be started before the training.
func TestLogdirThatAppears(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later", "logs")
	c := serve(t, &Options{Logdir: dir, Reload: 20 * time.Millisecond})
	appendEvents(t, filepath.Join(dir, "train", "1.tfevents"), point("loss", 1, 2))
	c.waitForSteps("train", "loss", 1)
	// From now on the directory reports its changes.
	for step := int64(2); step < 6; step++ {
		appendEvents(t, filepath.Join(dir, "train", "1.tfevents"), point("loss", step, 2))
	}
	c.waitForSteps("train", "loss", 1, 2, 3, 4, 5)
	appendEvents(t, filepath.Join(dir, "new", "deep", "1.tfevents"), point("loss", 7, 2))
	c.waitForSteps("new/deep", "loss", 7)
}

// TestSeveralWriters adds to two files of a run by turns.
func TestSeveralWriters(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1.tfevents"), filepath.Join(dir, "2.tfevents")
	appendEvents(t, first, point("a", 0, 0))
	appendEvents(t, second, point("b", 0, 0))
	c := serve(t, &Options{Logdir: dir, Reload: 20 * time.Millisecond})
	var want []int64
	for step := range int64(20) {
		if step > 0 {
			appendEvents(t, first, point("a", step, 0))
			appendEvents(t, second, point("b", step, 0))
		}
		want = append(want, step)
	}
	c.waitForSteps(".", "a", want...)
	c.waitForSteps(".", "b", want...)
	for step := range int64(10) { // and to one tag
		appendEvents(t, first, point("both", 2*step, 0))
		appendEvents(t, second, point("both", 2*step+1, 0))
	}
	c.waitForSteps(".", "both", want...)
	want = nil
	for step := range int64(5) { // and at the same steps
		appendEvents(t, first, point("same", step, 0))
		appendEvents(t, second, point("same", step, 1))
		want = append(want, step, step)
	}
	c.waitForSteps(".", "same", want...)
}

func TestSamplesBoundAnswers(t *testing.T) {
	dir := t.TempDir()
	for step := range int64(50) {
		appendEvents(t, filepath.Join(dir, "1.tfevents"), point("loss", step, 1))
	}
	c := serve(t, &Options{Logdir: dir, Reload: -1, Samples: map[string]int{summary.PluginScalars: 7, summary.PluginText: -1}})
	c.waitFor("the curve", func() bool { return c.curve(".", "loss", 1000) != nil })
	if got := c.curve(".", "loss", 1000).GetStep(); len(got) > 7 || got[0] != 0 || got[len(got)-1] != 49 {
		t.Errorf("steps %v, want 7 at most, the first and the last among them", got)
	}
}

// TestLogdirLargerThanMemory: what is thinned out keeps its ends and its peak, also
// while it grows; a run that is gone leaves its room to others.
func TestLogdirLargerThanMemory(t *testing.T) {
	dir := t.TempDir()
	var events []*tfpb.Event
	for step := range int64(20_000) {
		value := math.Sin(float64(step) / 100)
		if step == 777 {
			value = 50
		}
		events = append(events, point("loss", step, value))
	}
	for _, run := range []string{"a", "b", "c"} {
		appendEvents(t, filepath.Join(dir, run, "1.tfevents"), events...)
	}
	c := serve(t, &Options{Logdir: dir, Reload: 20 * time.Millisecond, MaxMemory: 200 << 10})
	last := func(run string) int64 {
		if steps := c.curve(run, "loss", 1<<20).GetStep(); len(steps) > 0 {
			return steps[len(steps)-1]
		}
		return -1
	}
	c.waitFor("the curves", func() bool { return last("a") == 19_999 && last("b") == 19_999 && last("c") == 19_999 })
	for step := int64(20_000); step < 20_010; step++ {
		appendEvents(t, filepath.Join(dir, "b", "1.tfevents"), point("loss", step, 0))
	}
	c.waitFor("the new point", func() bool { return last("b") == 20_009 })
	all := 0
	for _, run := range []string{"a", "b", "c"} {
		got := c.curve(run, "loss", 1<<20)
		n := len(got.GetStep())
		all += n
		if n < 500 || got.GetStep()[0] != 0 || slices.Max(got.GetValue()) != 50 {
			t.Errorf("run %s: %d points from step %d, highest %v", run, n, got.GetStep()[0], slices.Max(got.GetValue()))
		}
	}
	if all > 30_000 { // of 60,010; which runs give way depends on who is read first
		t.Errorf("%d points are kept", all)
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	c.waitFor("the end of run a", func() bool { return last("a") == -1 })
}

func TestBadRequests(t *testing.T) {
	c := serve(t, &Options{Logdir: t.TempDir(), Reload: -1})
	for method, req := range map[string]proto.Message{
		"ListScalars":       &tbdata.ListScalarsRequest{},
		"ListTensors":       &tbdata.ListTensorsRequest{},
		"ListBlobSequences": &tbdata.ListBlobSequencesRequest{},
		"ReadScalars":       &tbdata.ReadScalarsRequest{PluginFilter: scalars},
		"ReadTensors":       &tbdata.ReadTensorsRequest{PluginFilter: scalars},
		"ReadBlobSequences": &tbdata.ReadBlobSequencesRequest{PluginFilter: scalars, Downsample: &tbdata.Downsample{NumPoints: -1}},
	} {
		if err := c.call(method, req, new(tbdata.ListPluginsResponse)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", method, err)
		}
	}
	// Series of no plugin are those of no page.
	nameless := &tbdata.ListScalarsRequest{PluginFilter: &tbdata.PluginFilter{}}
	if err := c.call("ListScalars", nameless, new(tbdata.ListScalarsResponse)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a filter without a name: %v", err)
	}
	answer := new(tbdata.ReadScalarsResponse)
	req := &tbdata.ReadScalarsRequest{PluginFilter: &tbdata.PluginFilter{PluginName: "unknown"}, Downsample: &tbdata.Downsample{NumPoints: 1}}
	if err := c.call("ReadScalars", req, answer); err != nil || len(answer.GetRuns()) > 0 {
		t.Errorf("an unknown plugin: %v, %v", answer, err)
	}
}

// An answer that nobody could take, or whose client has hung up, is given up.
func TestGivenUp(t *testing.T) {
	s := loaded(t)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	s.store.view("run", func(x *tfevents.RunData) {
		histogram, image := x.Lookup("histogram"), x.Lookup("image")
		for _, c := range []struct {
			ctx    context.Context
			budget int
			want   codes.Code
		}{{t.Context(), 1 << 20, codes.OK}, {t.Context(), 100, codes.ResourceExhausted}, {gone, 1 << 20, codes.Canceled}} {
			if _, err := s.tensors(c.ctx, x, histogram, 20, &budget{left: c.budget}); status.Code(err) != c.want {
				t.Errorf("tensors, room for %d: %v", c.budget, err)
			}
			if _, err := s.blobs(c.ctx, "", x, image, 20, &budget{left: c.budget}); status.Code(err) != c.want {
				t.Errorf("blobs, room for %d: %v", c.budget, err)
			}
		}
	})
}

func FuzzBlobKey(f *testing.F) {
	f.Add(blobKey{"", "run", "tag/ü", 1 << 60, 3, 0}.String())
	f.Add("")
	f.Add("WzEsMl0")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseBlobKey(text)
		if err != nil {
			return
		}
		again, err := parseBlobKey(key.String())
		if err != nil || again != key {
			t.Errorf("%q: %+v, then %+v, %v", text, key, again, err)
		}
	})
}

func TestThinScalars(t *testing.T) {
	for n := range 60 {
		for most := range 40 {
			d := new(tbdata.ScalarData)
			for i := range n {
				value := float32(i % 7)
				switch i {
				case n / 2:
					value = 1000
				case n / 3:
					value = float32(math.NaN())
				}
				d.Step, d.WallTime, d.Value = append(d.Step, int64(i)), append(d.WallTime, float64(i)), append(d.Value, value)
			}
			thinScalars(d, most)
			if len(d.Step) > most || len(d.Value) != len(d.Step) || len(d.WallTime) != len(d.Step) || !slices.IsSorted(d.Step) {
				t.Fatalf("%d of %d points: %v", most, n, d.Step)
			}
			if n > 0 && most > 0 && d.Step[len(d.Step)-1] != int64(n-1) {
				t.Fatalf("%d of %d points: %v lack the last", most, n, d.Step)
			}
			if n > 1 && n/2 != n/3 && most >= 4 && !slices.Contains(d.Value, 1000) {
				t.Fatalf("%d of %d points: %v lack the peak", most, n, d.Value)
			}
		}
	}
}
