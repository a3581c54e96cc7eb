package dataserver

import (
	"context"
	"errors"
	"math"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents/summary"
)

const (
	tensors     = 8
	tensorBytes = 64 << 10 // as much as a client takes of an answer that it does not read
)

// sender serves a run with a series of large tensors, and a curve that is long, at an address.
func sender(t *testing.T, sending *sending) (s *Server, addr string) {
	t.Helper()
	dir := t.TempDir()
	var events []*tfpb.Event
	for step := range int64(2000) {
		e := point("loss", step, 1)
		if step < tensors {
			x := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeOf(1), StringVal: [][]byte{make([]byte, tensorBytes)}}
			e.GetSummary().Value = append(e.GetSummary().Value, summary.PluginTensor("text", summary.PluginText, nil, x))
		}
		events = append(events, e)
	}
	appendEvents(t, filepath.Join(dir, "1.tfevents"), events...)
	s, err := New(&Options{Logdir: dir, Reload: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.sending = sending
	s.store.scan(t.Context())
	return s, listen(t, s)
}

// unread is a call whose client has not read the answer.
type unread struct {
	t      *testing.T
	stream grpc.ClientStream
	cancel context.CancelFunc
}

func (c *client) begin(method string, req proto.Message) *unread {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+ServiceName+"/"+method, grpc.MaxCallRecvMsgSize(maxAnswer))
	if err == nil {
		err = errors.Join(stream.SendMsg(req), stream.CloseSend())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return &unread{c.t, stream, cancel}
}

var allTexts = &tbdata.ReadTensorsRequest{PluginFilter: filter(summary.PluginText), Downsample: &tbdata.Downsample{NumPoints: 100}}

// texts reads the answer to allTexts.
func (u *unread) texts() error {
	answer := new(tbdata.ReadTensorsResponse)
	if err := u.stream.RecvMsg(answer); err != nil {
		return err
	}
	if data := answer.GetRuns()[0].GetTags()[0].GetData(); len(data.GetValue()) != tensors || len(data.GetValue()[7].GetStringVal()[0]) != tensorBytes {
		u.t.Errorf("%d values: %.200v", len(data.GetValue()), data)
	}
	return nil
}

// Large answers that nobody reads are bounded: the next ones wait in turn, and small ones do
// not.
func TestLargeAnswersTakeTurns(t *testing.T) {
	s, addr := sender(t, newSending(10<<10, 2, time.Hour))
	c := connect(t, addr)
	var calls []*unread
	for i := range 5 {
		calls = append(calls, c.begin("ReadTensors", allTexts))
		c.waitFor("the answer begun or waiting", func() bool {
			return len(s.sending.slots)+int(s.sending.waiting.Load()) == i+1
		})
	}
	if n := s.sending.waiting.Load(); n != 3 {
		t.Errorf("%d answers wait, want 3", n)
	}
	small := new(tbdata.ListScalarsResponse)
	if err := c.call("ListScalars", &tbdata.ListScalarsRequest{PluginFilter: scalars}, small); err != nil || len(small.Runs) != 1 {
		t.Errorf("a small answer: %v, %v", small, err)
	}
	for i, call := range calls {
		if err := call.texts(); err != nil {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	c.waitFor("that nothing is sent", func() bool { return len(s.sending.slots) == 0 })
}

// A client that does not read is given up as soon as another waits, and only then.
func TestSlowReadersAreGivenUp(t *testing.T) {
	s, addr := sender(t, newSending(10<<10, 2, time.Millisecond))
	slow := connect(t, addr)
	patient := slow.begin("ReadTensors", allTexts)
	slow.waitFor("the first answer", func() bool { return len(s.sending.slots) == 1 })
	other := connect(t, addr)
	for range 20 {
		if err := other.begin("ReadTensors", allTexts).texts(); err != nil {
			t.Fatal(err)
		}
		slow.waitFor("the end of the answer", func() bool { return len(s.sending.slots) == 1 })
	}
	if err := patient.texts(); err != nil {
		t.Fatalf("nobody waited, but: %v", err)
	}
	given := []*unread{slow.begin("ReadTensors", allTexts), slow.begin("ReadTensors", allTexts)}
	slow.waitFor("both answers", func() bool { return len(s.sending.slots) == 2 })
	if err := other.begin("ReadTensors", allTexts).texts(); err != nil {
		t.Fatal(err)
	}
	for _, call := range given {
		if err := call.texts(); status.Code(err) != codes.Unavailable {
			t.Errorf("a client that did not read got %v", err)
		}
	}
}

// Who hangs up, or cancels its call, leaves the slot to others.
func TestUnreadAnswersEnd(t *testing.T) {
	s, addr := sender(t, newSending(10<<10, 1, time.Hour))
	for name, end := range map[string]func(c *client, u *unread){
		"hangs up":      func(c *client, _ *unread) { c.conn.Close() },
		"cancels":       func(_ *client, u *unread) { u.cancel() },
		"cancels later": func(_ *client, u *unread) { u.texts(); u.cancel() },
	} {
		c := connect(t, addr)
		u := c.begin("ReadTensors", allTexts)
		c.waitFor("the answer", func() bool { return len(s.sending.slots) == 1 })
		waits := connect(t, addr)
		gone := waits.begin("ReadTensors", allTexts)
		c.waitFor("the second answer", func() bool { return s.sending.waiting.Load() == 1 })
		gone.cancel()
		c.waitFor("the end of the second answer", func() bool { return s.sending.waiting.Load() == 0 })
		end(c, u)
		if err := waits.begin("ReadTensors", allTexts).texts(); err != nil {
			t.Errorf("one %s: the next got %v", name, err)
		}
		c.waitFor("that nothing is sent", func() bool { return len(s.sending.slots) == 0 })
	}
}

// An answer that is small, but takes much to be made, needs a slot for that alone.
func TestSmallAnswersOfLongSeries(t *testing.T) {
	s, addr := sender(t, newSending(10<<10, 1, time.Hour))
	c := connect(t, addr)
	s.sending.slots <- struct{}{}
	u := c.begin("ReadScalars", &tbdata.ReadScalarsRequest{PluginFilter: scalars, Downsample: &tbdata.Downsample{NumPoints: 7}})
	c.waitFor("the answer to wait", func() bool { return s.sending.waiting.Load() == 1 })
	<-s.sending.slots
	c.waitFor("the answer to be made", func() bool { return s.sending.waiting.Load() == 0 && len(s.sending.slots) == 0 })
	answer := new(tbdata.ReadScalarsResponse)
	if err := u.stream.RecvMsg(answer); err != nil || len(answer.GetRuns()[0].GetTags()[0].GetData().GetStep()) > 7 {
		t.Errorf("%v, %v", answer, err)
	}
}

// Blobs take turns, too.
func TestLargeBlobsTakeTurns(t *testing.T) {
	dir := t.TempDir()
	x := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeOf(3), StringVal: [][]byte{[]byte("8"), []byte("9"), large}}
	appendEvents(t, filepath.Join(dir, "1.tfevents"), &tfpb.Event{WallTime: 2, What: &tfpb.Event_Summary{Summary: summary.New(summary.PluginTensor("image", summary.PluginImages, nil, x))}})
	s, err := New(&Options{Logdir: dir, Reload: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.sending = newSending(10<<10, 1, time.Hour)
	s.store.scan(t.Context())
	c := connect(t, listen(t, s))
	key := blobKey{"", ".", "image", 0, 2, 0}.String()
	first := c.begin("ReadBlob", &tbdata.ReadBlobRequest{BlobKey: key})
	c.waitFor("the first blob", func() bool { return len(s.sending.slots) == 1 })
	second := c.begin("ReadBlob", &tbdata.ReadBlobRequest{BlobKey: key})
	c.waitFor("the second blob to wait", func() bool { return s.sending.waiting.Load() == 1 })
	for _, u := range []*unread{first, second} {
		n := 0
		for answer := new(tbdata.ReadBlobResponse); u.stream.RecvMsg(answer) == nil; {
			n += len(answer.GetData())
		}
		if n != len(large) {
			t.Errorf("a blob has %d bytes, want %d", n, len(large))
		}
	}
	c.waitFor("that nothing is sent", func() bool { return len(s.sending.slots) == 0 })
	if _, _, err := c.blob(blobKey{"", ".", "image", 0, 3, 0}.String()); status.Code(err) != codes.NotFound || len(s.sending.slots) > 0 {
		t.Errorf("a blob that is not there: %v, and %d slots are taken", err, len(s.sending.slots))
	}
}

// An answer that fails, or whose client has gone before it was made, has no slot.
func TestFailedAnswers(t *testing.T) {
	s := newSending(100, 1, time.Hour)
	hungUp := &conn{closed: true}
	ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: hungUp})
	failed := errors.New("failed")
	_, err := s.answer(ctx, func(r *budget) (proto.Message, error) {
		if err := r.take(ctx, 1000); err != nil {
			return nil, err
		}
		return nil, failed
	})
	if err != failed || len(s.slots) > 0 {
		t.Errorf("%v, and %d slots are taken", err, len(s.slots))
	}
	m, err := s.answer(ctx, func(r *budget) (proto.Message, error) {
		return &tbdata.ReadBlobResponse{Data: make([]byte, 1000)}, r.take(ctx, 1000)
	})
	if err != nil || len(s.slots) != 1 {
		t.Errorf("%v, and %d slots are taken", err, len(s.slots))
	}
	if _, err := newCodec().Marshal(m); err != nil || len(s.slots) > 0 {
		t.Errorf("%v, and %d slots are taken", err, len(s.slots))
	}
	if err := (&budget{left: math.MaxInt}).need(math.MaxInt); err != nil {
		t.Error(err)
	}
}

// A client has a minute, and a second for each MiB, for an answer: after that it is hung up on
// if others wait. The end of an answer takes no slot from others.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSending(100, 2, time.Minute)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := &conn{Conn: ours, unread: map[*slot]struct{}{}}
		state := func() (closed bool, unread int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.closed, len(c.unread)
		}
		ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: c})
		var slots [2]*slot
		for i := range slots {
			var err error
			if slots[i], err = s.take(ctx); err != nil {
				t.Fatal(err)
			}
			slots[i].sent(3 << 20 * (i + 1))
		}
		s.waiting.Add(1)
		slots[0].end()
		slots[0].end()
		if _, unread := state(); len(s.slots) != 1 || unread != 1 {
			t.Errorf("%d slots are taken, %d answers unread, want 1 of each", len(s.slots), unread)
		}
		time.Sleep(time.Minute + 6*time.Second - 1)
		synctest.Wait()
		if closed, _ := state(); closed {
			t.Error("it was hung up on early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if closed, _ := state(); !closed || len(s.slots) > 0 {
			t.Errorf("closed: %v, %d slots are taken", closed, len(s.slots))
		}
	})
}
