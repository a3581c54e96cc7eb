package master_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// address starts a server that ends with the test.
func address(t *testing.T, o *master.Options) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, served := master.New(o), make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "grpc://" + ln.Addr().String()
}

func dial(t *testing.T, addr string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(t.Context(), addr, &remote.Options{ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// countingListener counts the connections that are open.
type countingListener struct {
	net.Listener
	open, most atomic.Int64
}

type countedConn struct {
	net.Conn
	closed func()
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if n := l.open.Add(1); n > l.most.Load() {
		l.most.Store(n)
	}
	return countedConn{c, sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

func (c countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestStrangers opens more connections than a process may have files, and says nothing:
// the files that the training needs are left, and a client that is there is served.
func TestStrangers(t *testing.T) {
	const most = 256
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingListener{Listener: ln}
	s, served := master.New(nil), make(chan error, 1)
	go func() { served <- s.Serve(counted) }()
	defer func() {
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	sess := open(t, dial(t, "grpc://"+ln.Addr().String()), nil)
	run(t, sess, "init", 1)
	for range most + 20 {
		conn, err := net.DialTimeout("tcp", ln.Addr().String(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for deadline := time.Now().Add(time.Minute); counted.most.Load() < most; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections were accepted", counted.most.Load())
		}
	}
	run(t, sess, "add", 1)
	if n := counted.most.Load(); n > most+1 { // one may wait for the end of another
		t.Errorf("%d connections were open at once", n)
	}
}

// TestClientGone ends the sessions of a client that went without closing them,
// so that others get in; those of a client that is there stay.
func TestClientGone(t *testing.T) {
	addr := address(t, &master.Options{MaxSessions: 2, SessionGrace: 20 * time.Millisecond})
	gone, stays := dial(t, addr), dial(t, addr)
	open(t, gone, nil)
	kept := open(t, stays, nil)
	run(t, kept, "init", 1)
	if _, err := stays.NewSession(t.Context(), graph(), nil); err == nil {
		t.Fatal("a third session was let in")
	}
	gone.Close() // breaks the connection
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := stays.NewSession(t.Context(), graph(), nil)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the session of a client that is gone is still there: %v", err)
		}
	}
	if got := run(t, kept, "add", 1); got != 2 {
		t.Errorf("the session of the client that is there gives %v, want 2", got)
	}
}

// TestMaxRequest refuses a request that is too large, and answers the next.
func TestMaxRequest(t *testing.T) {
	s := open(t, serve(t, &master.Options{MaxRequestBytes: 1 << 16}), nil)
	big := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{1 << 15}, Data: make([]byte, 4<<15)}
	for i := range big.Data {
		big.Data[i] = byte(i % 251) // equal elements would be sent once
	}
	_, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": big}, []string{"init"}, nil)
	if err == nil || !strings.Contains(err.Error(), "65536") {
		t.Errorf("128 KiB: %v, want an error that names the limit", err)
	}
	run(t, s, "init", 1)
}

// TestMaxStepTime ends a step that waits for an element that never comes.
func TestMaxStepTime(t *testing.T) {
	c := serve(t, &master.Options{MaxStepTime: 20 * time.Millisecond})
	s, err := c.NewSession(t.Context(), queueGraph(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), nil, []string{"take"}, nil); !errors.Is(err, session.ErrDeadlineExceeded) {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
}

// TestMaxSessionMemory bounds the values of a session's steps.
func TestMaxSessionMemory(t *testing.T) {
	s := open(t, serve(t, &master.Options{MaxSessionMemory: 1 << 20}), nil)
	big := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{1 << 19}, Data: make([]byte, 4<<19)}
	if err := s.Extend(t.Context(), &tfpb.GraphDef{Node: []*tfpb.NodeDef{node("neg", "Neg", "x")}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": big}, []string{"neg"}, nil)
	if !errors.Is(err, &session.OpError{Code: tfpb.Code_RESOURCE_EXHAUSTED}) {
		t.Errorf("2 MiB: %v, want RESOURCE_EXHAUSTED", err)
	}
	run(t, s, "init", 1)
}

// TestClientFiles refuses what a client would read outside the directories.
func TestClientFiles(t *testing.T) {
	inside, outside := t.TempDir(), t.TempDir()
	text := func(name, s string) *tfpb.NodeDef {
		n := node(name, "Const")
		n.Attr["dtype"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_STRING}}
		n.Attr["value"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Tensor{Tensor: &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: &tfpb.TensorShapeProto{}, StringVal: [][]byte{[]byte(s)}}}}
		return n
	}
	for _, dir := range []string{inside, outside} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("hello"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c := serve(t, &master.Options{Runtime: runtime.Options{FilesWithin: []string{inside}}})
	s, err := c.NewSession(t.Context(), &tfpb.GraphDef{Node: []*tfpb.NodeDef{text("in", filepath.Join(inside, "f")), text("out", filepath.Join(outside, "f")),
		node("good", "ReadFile", "in"), node("bad", "ReadFile", "out")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(context.Background(), nil, []string{"good"}, nil); err != nil {
		t.Error(err)
	}
	if _, err := s.Run(context.Background(), nil, []string{"bad"}, nil); !errors.Is(err, &session.OpError{Code: tfpb.Code_PERMISSION_DENIED}) {
		t.Errorf("got %v, want PERMISSION_DENIED", err)
	}
}
