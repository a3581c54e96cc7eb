package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// service begins the names of all methods. It is not the package of
// TensorFlow's master_service.proto, see the package comment.
const service = "/tensorflow.MasterService/"

// Defaults of Options.
const (
	DefaultConnectTimeout    = 10 * time.Second
	DefaultCloseTimeout      = 5 * time.Second
	DefaultMaxReconnectDelay = 5 * time.Second
)

// Keep-alive settings. TensorFlow's server disconnects a client that pings
// more often than every five minutes while nothing else is sent, as during a
// long step; so HTTP/2 pings are rarer than that, and TCP keep-alive notices a
// dead peer earlier.
const (
	pingEvery      = 330 * time.Second
	pingTimeout    = 20 * time.Second
	tcpIdle        = 30 * time.Second
	tcpInterval    = 10 * time.Second
	tcpProbes      = 3
	attemptTimeout = 5 * time.Second // of one attempt to connect
	waitPause      = 100 * time.Millisecond
)

// Options changes how a Client works. The zero value and nil are valid.
type Options struct {
	// ConnectTimeout is how long Dial waits for a server that does not answer
	// yet. Zero means DefaultConnectTimeout; negative: Dial does not ask the
	// server, the first call does.
	ConnectTimeout time.Duration
	// CloseTimeout bounds Session.Close and Callable.Close. They need all of it
	// if a server of the cluster is gone. Zero means DefaultCloseTimeout.
	CloseTimeout time.Duration
	// MaxReconnectDelay is the longest pause between two attempts to connect.
	// Zero means DefaultMaxReconnectDelay.
	MaxReconnectDelay time.Duration
	// NoReconnectJitter makes these pauses the same each time, for reproducible
	// tests. Otherwise they vary by a fifth, so that the clients of a server do
	// not all reconnect at once.
	NoReconnectJitter bool
	// MaxMessageBytes bounds a message in either direction. Zero means 2 GiB
	// less one byte, which is also TensorFlow's limit.
	MaxMessageBytes int

	// TLS encrypts the connection, for a proxy in front of the server that
	// expects it. TensorFlow's server does not: nil is plain text.
	TLS *tls.Config
	// DialContext opens connections to host:port or unix:PATH, for example
	// through a tunnel. Nil means directly.
	DialContext func(ctx context.Context, addr string) (net.Conn, error)
}

// Client is a connection to one server. It is safe for concurrent use.
type Client struct {
	target       string // grpc://host:port, unix:PATH
	conn         *grpc.ClientConn
	closeTimeout time.Duration
}

// Dial connects to the TensorFlow server that target names, grpc://host:port or
// unix:PATH, and checks that it answers. The caller must close the Client.
//
// The error is [session.ErrUnavailable] if the server cannot be reached,
// [session.ErrCancelled] or [session.ErrDeadlineExceeded] if ctx ends,
// [session.ErrUnimplemented] if something else is at that address, and a
// [*TargetError] if target is malformed.
func Dial(ctx context.Context, target string, o *Options) (*Client, error) {
	if o == nil {
		o = &Options{}
	}
	addr, err := ParseTarget(target)
	if err != nil {
		return nil, err
	}
	// The dialer resolves names again at each attempt. grpc's own resolver
	// would also ask DNS for settings of the service.
	conn, err := grpc.NewClient("passthrough:///"+addr, o.dialOptions(addr)...)
	if err != nil {
		return nil, &TargetError{Target: target, Reason: err.Error()}
	}
	if !strings.HasPrefix(addr, unixPrefix) {
		target = scheme + addr
	}
	c := &Client{target: target, conn: conn, closeTimeout: cmp.Or(max(o.CloseTimeout, 0), DefaultCloseTimeout)}
	if o.ConnectTimeout < 0 {
		return c, nil
	}
	if err := c.connect(ctx, cmp.Or(o.ConnectTimeout, DefaultConnectTimeout)); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (o *Options) dialOptions(addr string) []grpc.DialOption {
	limit := o.MaxMessageBytes
	if limit <= 0 {
		limit = math.MaxInt32
	}
	dial := o.DialContext
	if dial == nil {
		dial = dialDirectly
	}
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	pauses := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
		MaxDelay: cmp.Or(max(o.MaxReconnectDelay, 0), DefaultMaxReconnectDelay)}
	if o.NoReconnectJitter {
		pauses.Jitter = 0
	}
	list := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: attemptTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit)),
	}
	if strings.HasPrefix(addr, unixPrefix) && (o.TLS == nil || o.TLS.ServerName == "") {
		list = append(list, grpc.WithAuthority("localhost")) // a path is not a name of a server
	}
	return list
}

func dialDirectly(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: tcpIdle, Interval: tcpInterval, Count: tcpProbes}}
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return d.DialContext(ctx, "unix", path)
	}
	return d.DialContext(ctx, "tcp", addr)
}

// Target returns the server's address as grpc://host:port or unix:PATH.
func (c *Client) Target() string { return c.target }

// Close ends the connection, and with it all calls in flight. Open sessions
// stay open on the server, unused, so close them first.
func (c *Client) Close() error { return c.conn.Close() }

// Wait returns when the server answers, whether it is the old one or one
// started in its place. It tries until ctx ends; the error then says what
// prevents it. It fails at once if something other than a TensorFlow server
// answers, or if either side rejects the other's certificate.
func (c *Client) Wait(ctx context.Context) error {
	c.conn.ResetConnectBackoff()
	reason := ""
	for {
		err := c.probe(ctx)
		switch {
		case err == nil:
			return nil
		case ended(ctx):
			return c.contextError(ctx, reason)
		case !isCode(err, tfpb.Code_UNAVAILABLE):
			return err
		}
		reason = strings.TrimPrefix(messageOf(err), c.target+": ")
		if distrust(reason) {
			return &session.OpError{Code: tfpb.Code_UNAUTHENTICATED, Message: c.target + ": " + reason}
		}
		timer := time.NewTimer(waitPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return c.contextError(ctx, reason)
		case <-timer.C:
		}
	}
}

// connect waits for the server as long as patience and ctx allow.
func (c *Client) connect(ctx context.Context, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.Wait(bounded)
	if ended(ctx) || !isCode(err, tfpb.Code_DEADLINE_EXCEEDED) {
		return err
	}
	return &session.OpError{Code: tfpb.Code_UNAVAILABLE,
		Message: fmt.Sprintf("%s: no answer within %v; is the server running?", messageOf(err), patience)}
}

// probe asks the server to close a session without a name. A TensorFlow server
// answers at once that there is none; ListDevices would first wait for all
// servers of the cluster.
func (c *Client) probe(ctx context.Context) error {
	err := c.conn.Invoke(ctx, service+"CloseSession", &tfpb.CloseSessionRequest{}, &tfpb.CloseSessionResponse{})
	st := statusOf(err)
	switch {
	case err == nil, st.Code() == codes.Aborted:
		return nil
	case st.Code() == codes.Unimplemented:
		return &session.OpError{Code: tfpb.Code_UNIMPLEMENTED, Message: c.target + " is not a TensorFlow server: " + st.Message()}
	}
	return c.callError(ctx, "", tfpb.Code(st.Code()), st.Message(), nil)
}

// invoke calls a method and turns its failure into an *OpError. ops names the
// op of each node of the session's graph.
func (c *Client) invoke(ctx context.Context, method string, req, resp proto.Message, ops opTypes) error {
	err := c.conn.Invoke(ctx, service+method, req, resp)
	if err == nil {
		return nil
	}
	st := statusOf(err)
	return c.callError(ctx, method, tfpb.Code(st.Code()), st.Message(), ops)
}

// ListDevices returns the devices of the server first, then those of the other
// servers of its cluster. It waits until all of them answer.
//
// A device's incarnation is a new random number whenever its server starts: if
// it changes, the device's variables are gone.
func (c *Client) ListDevices(ctx context.Context) (local, others []*tfpb.DeviceAttributes, err error) {
	resp := &tfpb.ListDevicesResponse{}
	if err := c.invoke(ctx, "ListDevices", &tfpb.ListDevicesRequest{}, resp, nil); err != nil {
		return nil, nil, err
	}
	return resp.GetLocalDevice(), resp.GetRemoteDevice(), nil
}

// Reset destroys what all clients of the server have there: it drops the
// variables, queues and other resources in the named containers on all servers
// of the cluster that match deviceFilters (without containers: those in the
// default container, which has everything that was not put elsewhere), and it
// ends every session of the server, whatever containers it used. Other
// trainings on the server lose their state since their last checkpoint.
//
// Nothing in this module calls it. A training that starts from scratch needs its init
// op, not this. It is for a server that belongs only to the caller and holds
// leftovers that nobody uses any more.
func Reset(ctx context.Context, c *Client, containers, deviceFilters []string) error {
	req := &tfpb.ResetRequest{Container: containers, DeviceFilters: deviceFilters}
	return c.invoke(ctx, "Reset", req, &tfpb.ResetResponse{}, nil)
}
