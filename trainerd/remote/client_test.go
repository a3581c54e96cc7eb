package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestCreateSessionSendsGraphConfigAndTarget(t *testing.T) {
	f := startFake(t)
	c := dial(t, f.target(), nil)
	config := &tfpb.ConfigProto{AllowSoftPlacement: true, DeviceFilters: []string{"/job:ps"}}
	s, err := c.NewSession(t.Context(), smallGraph, config)
	if err != nil {
		t.Fatal(err)
	}
	want := &tfpb.CreateSessionRequest{GraphDef: smallGraph, Config: config, Target: f.target()}
	if diff := cmp.Diff(want, f.sessions[s.Handle()].create, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestRestartOfTheServer(t *testing.T) {
	f := startFake(t)
	f.step = echo
	c := dial(t, f.target(), &Options{MaxReconnectDelay: 200 * time.Millisecond})
	s := newSession(t, c)
	callable, err := s.MakeCallable(t.Context(), nil, nil, []string{"y"})
	if err != nil {
		t.Fatal(err)
	}
	step, began, _ := blocking()
	f.step = step
	inFlight := make(chan error, 1)
	go func() {
		_, err := s.Run(context.WithoutCancel(t.Context()), nil, nil, []string{"y"})
		inFlight <- err
	}()
	receive(t, began, "the step")
	addr := f.addr
	f.stop()
	wantError(t, <-inFlight, session.ErrUnavailable, c.Target())

	_, err = s.Run(t.Context(), nil, nil, []string{"y"})
	wantError(t, err, session.ErrUnavailable, c.Target())
	_, err = c.NewSession(t.Context(), smallGraph, nil)
	wantError(t, err, session.ErrUnavailable, "connection refused")

	f.step = echo
	f.start(t, addr)
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(t.Context(), nil, nil, []string{"y"})
	wantError(t, err, session.ErrAborted, "is not found", c.Target())
	_, err = s.ListDevices(t.Context())
	wantError(t, err, session.ErrAborted)
	_, err = callable.Run(t.Context(), nil)
	wantError(t, err, session.ErrAborted)
	if err := errors.Join(callable.Close(), s.Close()); err != nil {
		t.Errorf("closing what the server has lost: %v", err)
	}

	if _, err := newSession(t, c).Run(t.Context(), nil, nil, []string{"y"}); err != nil {
		t.Errorf("on a new session: %v", err)
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	f, c, _ := open(t)
	f.stop()
	reason := c.Target() + ": " // what is in the way comes after it
	err := withMoreTime(reason, func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return c.Wait(ctx)
	})
	wantError(t, err, session.ErrDeadlineExceeded, reason)
	wantError(t, err, context.DeadlineExceeded)
}

// withMoreTime calls do with a limit that doubles until its error says what is
// wanted: how soon a busy machine gets to a first attempt is not what a test is about.
func withMoreTime(want string, do func(limit time.Duration) error) error {
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		if err := do(limit); err == nil || strings.Contains(err.Error(), want) || limit > patience {
			return err
		}
	}
}

func TestDialFails(t *testing.T) {
	const refuses = "127.0.0.1:1" // no port that another process may get meanwhile
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	otherServer := grpc.NewServer() // gRPC, but no MasterService
	go otherServer.Serve(other)
	t.Cleanup(otherServer.Stop)

	tests := []struct {
		name, addr string
		kind       error
		says       string
	}{
		{"nobody listens", refuses, session.ErrUnavailable, "connection refused"},
		{"nobody answers", silent.Addr().String(), session.ErrUnavailable, "no answer within "},
		{"not TensorFlow", other.Addr().String(), session.ErrUnimplemented, "is not a TensorFlow server"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := withMoreTime(test.says, func(limit time.Duration) error {
				_, err := Dial(t.Context(), "grpc://"+test.addr, &Options{ConnectTimeout: limit})
				return err
			})
			wantError(t, err, test.kind, test.says, "grpc://"+test.addr)
		})
	}
	t.Run("ctx ends first", func(t *testing.T) {
		t.Parallel()
		err := withMoreTime("connection refused", func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := Dial(ctx, "grpc://"+refuses, &Options{ConnectTimeout: patience * 10})
			return err
		})
		wantError(t, err, session.ErrDeadlineExceeded, "connection refused")
	})
	t.Run("without asking the server", func(t *testing.T) {
		c := dial(t, "grpc://"+refuses, &Options{ConnectTimeout: -1})
		_, err := c.NewSession(t.Context(), nil, nil)
		wantError(t, err, session.ErrUnavailable, "connection refused")
	})
}

func TestDialWaitsForAServerThatStarts(t *testing.T) {
	f := &fakeMaster{}
	attempts := 0
	dial(t, "grpc://127.0.0.1:1", &Options{DialContext: func(ctx context.Context, addr string) (net.Conn, error) {
		if attempts++; attempts < 3 {
			return dialDirectly(ctx, addr)
		}
		if attempts == 3 {
			f.start(t, "127.0.0.1:0")
			t.Cleanup(f.stop)
		}
		return dialDirectly(ctx, f.addr)
	}})
	if attempts < 3 {
		t.Errorf("%d attempts", attempts)
	}
}

func TestTLSThroughATunnel(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	f := &fakeMaster{options: []grpc.ServerOption{grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: web.TLS.Certificates}))}}
	f.start(t, "127.0.0.1:0")
	t.Cleanup(f.stop)
	tunnel := func(ctx context.Context, addr string) (net.Conn, error) {
		if addr != "example.com:2222" { // the name in the certificate
			return nil, fmt.Errorf("dialled %s", addr)
		}
		return dialDirectly(ctx, f.addr)
	}
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	newSession(t, dial(t, "grpc://example.com:2222", &Options{TLS: &tls.Config{RootCAs: roots}, DialContext: tunnel}))

	_, err := Dial(t.Context(), "grpc://example.com:2222", &Options{DialContext: tunnel, ConnectTimeout: 200 * time.Millisecond})
	if !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("plain text: got %v, want UNAVAILABLE", err)
	}
	_, err = Dial(t.Context(), "grpc://example.com:2222", &Options{TLS: &tls.Config{RootCAs: x509.NewCertPool()}, DialContext: tunnel, ConnectTimeout: patience})
	if !isCode(err, tfpb.Code_UNAUTHENTICATED) || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("unknown authority: got %v, want UNAUTHENTICATED", err)
	}
}

func TestUnixSocket(t *testing.T) {
	f := &fakeMaster{step: echo}
	f.start(t, "127.0.0.1:0")
	t.Cleanup(f.stop)
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go f.server.Serve(ln) // ends with the server, and closes ln
	c := dial(t, "unix:"+path, nil)
	if c.Target() != "unix:"+path {
		t.Errorf("target %s", c.Target())
	}
	if _, err := newSession(t, c).Run(t.Context(), nil, nil, []string{"y"}); err != nil {
		t.Error(err)
	}
}

func TestListDevices(t *testing.T) {
	_, c, s := open(t)
	local, others, err := c.ListDevices(t.Context())
	if err != nil || len(local) != 1 || local[0].GetIncarnation() != 7 || len(others) != 1 {
		t.Errorf("the server's: %v, %v, %v", local, others, err)
	}
	all, err := s.ListDevices(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("the session's: %v, %v", all, err)
	}
}

func TestReset(t *testing.T) {
	f, c, s := open(t)
	if err := s.Close(); err != nil || len(f.resets) != 0 {
		t.Fatalf("closing a session: %v, resets %v", err, f.resets)
	}
	s = newSession(t, c)
	if err := Reset(t.Context(), c, []string{"mine"}, []string{"/job:ps"}); err != nil {
		t.Fatal(err)
	}
	want := []*tfpb.ResetRequest{{Container: []string{"mine"}, DeviceFilters: []string{"/job:ps"}}}
	if diff := cmp.Diff(want, f.resets, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	_, err := s.Run(t.Context(), nil, nil, []string{"y"})
	wantError(t, err, session.ErrAborted)
}

func TestClosedClient(t *testing.T) {
	f, c, s := open(t)
	step, began, _ := blocking()
	f.step = step
	result := make(chan error, 1)
	go func() {
		_, err := s.Run(context.WithoutCancel(t.Context()), nil, nil, []string{"y"})
		result <- err
	}()
	receive(t, began, "the step")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-result, session.ErrCancelled)
	_, err := c.NewSession(t.Context(), nil, nil)
	wantError(t, err, session.ErrCancelled, "closing")
	wantError(t, s.Close(), session.ErrCancelled)
}

func TestCreateSessionThatWaitsForTheCluster(t *testing.T) {
	f := startFake(t)
	f.create = func(ctx context.Context, _ *tfpb.CreateSessionRequest) error {
		<-ctx.Done()
		return ctx.Err()
	}
	c := dial(t, f.target(), nil)
	_, err := c.NewSession(t.Context(), smallGraph, &tfpb.ConfigProto{OperationTimeoutInMs: 50})
	wantError(t, err, session.ErrDeadlineExceeded, "waits for all servers of its cluster")
}

func TestCreateSessionWithAnOpThatTheServerLacks(t *testing.T) {
	f := startFake(t)
	f.create = func(context.Context, *tfpb.CreateSessionRequest) error {
		return status.Error(codes.NotFound, "Op type not registered 'NoSuchOp' in binary running on host.")
	}
	_, err := dial(t, f.target(), nil).NewSession(t.Context(), smallGraph, nil)
	wantError(t, err, session.ErrUnimplemented, "NoSuchOp")
}
