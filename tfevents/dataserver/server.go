package dataserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/trainerd/trainerd/internal/connlimit"
	"github.com/trainerd/trainerd/tfevents"
)

// DefaultReload is TensorBoard's time between two scans of a directory.
const DefaultReload = 5 * time.Second

// DefaultMaxMemory is room for some 60 million scalars.
const DefaultMaxMemory = 1 << 30

// indexShare is the part of the memory, in percent, that points may take: the
// garbage collector and the answers need the rest.
const indexShare = 60

// Options holds the choices of [New]. Only Logdir is needed.
type Options struct {
	// Logdir is the directory whose runs are served. It may appear later.
	Logdir string

	// Reload is the time between two scans of the directory (default 5 s). If
	// negative, it is read once.
	Reload time.Duration

	// Samples limits, for each plugin, how many points of a series are served,
	// whatever a request wants; negative means no limit.
	Samples map[string]int

	// MaxMemory limits the memory of the process used for points, in bytes
	// (default [DefaultMaxMemory], negative means no limit). Beyond it the
	// longest series are thinned out, as described at [tfevents.MemoryLimit].
	MaxMemory int64

	// Readers is how many runs are read at the same time (default: one per processor). If
	// GOMAXPROCS is larger than that, requests are answered at once even during the first
	// load.
	Readers int

	// Logger gets notable events; nil discards them.
	Logger *slog.Logger
}

// Server serves one log directory.
type Server struct {
	o     Options
	store *store
	grpc  *grpc.Server

	sending *sending

	loading sync.Mutex // held while the index is brought up to date
}

// UnsupportedError says that a log directory cannot be served.
type UnsupportedError struct {
	Logdir string
	Reason string
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("logdir %s: %s", e.Logdir, e.Reason) }

// New returns a Server that has not read anything yet. The error is an
// *UnsupportedError if the log directory is not on this machine.
func New(o *Options) (*Server, error) {
	s := &Server{o: *o}
	if err := checkLogdir(s.o.Logdir); err != nil {
		return nil, err
	}
	if s.o.Reload == 0 {
		s.o.Reload = DefaultReload
	}
	if s.o.Logger == nil {
		s.o.Logger = slog.New(slog.DiscardHandler)
	}
	if s.o.MaxMemory == 0 {
		s.o.MaxMemory = DefaultMaxMemory
	}
	if s.o.Readers <= 0 {
		s.o.Readers = runtime.GOMAXPROCS(0)
	}
	s.store = newStore(tfevents.DirFS(s.o.Logdir), s.o.MaxMemory/100*indexShare, s.o.Logger)
	s.store.readers = s.o.Readers
	s.sending = newSending(smallAnswer, largeAnswers, slowPatience)
	s.grpc = grpc.NewServer(grpc.Creds(newHandshake()), grpc.ForceServerCodecV2(newCodec()), grpc.MaxSendMsgSize(maxAnswer), grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(maxCalls), grpc.ConnectionTimeout(greeting),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 30 * time.Second})) // a client that is gone keeps no other waiting
	s.grpc.RegisterService(&service, s)
	return s, nil
}

const (
	// maxAnswer is the largest message that TensorBoard takes.
	maxAnswer = 256 << 20
	// maxRequest has room for the names of a hundred thousand runs.
	maxRequest = 16 << 20
	// maxConns bounds the connections; more wait. A TensorBoard has one.
	maxConns = 32
	// maxCalls bounds the concurrent calls of a connection; more wait.
	maxCalls = 32
	// greeting is how long a client may take to begin to speak HTTP/2.
	greeting = 10 * time.Second
)

func checkLogdir(dir string) error {
	if dir == "" {
		return &UnsupportedError{dir, "is empty"}
	}
	if scheme, _, ok := strings.Cut(dir, "://"); ok {
		return &UnsupportedError{dir, scheme + ":// is not supported, only directories of this machine"}
	}
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a training may be about to begin
	}
	if err != nil {
		return &UnsupportedError{dir, err.Error()}
	}
	if !info.IsDir() {
		return &UnsupportedError{dir, "is not a directory"}
	}
	return nil
}

// Load updates the index and returns when that is done, or when ctx ends. Serve does this
// itself; Load is for a caller who knows that files have changed, or who has set a negative
// Options.Reload. It may be called at any time.
func (s *Server) Load(ctx context.Context) {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.store.scan(ctx)
}

// loadNamed is Load for the named runs.
func (s *Server) loadNamed(ctx context.Context, names map[string]struct{}) {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.store.updateNamed(ctx, names)
}

// late is [store.late].
func (s *Server) late() map[string]struct{} {
	s.loading.Lock()
	defer s.loading.Unlock()
	return s.store.late()
}

// Serve answers requests on ln, which it closes, while it reads the log
// directory. It returns nil after ctx and all goroutines have ended.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		s.follow(ctx)
	}()
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	err := s.grpc.Serve(connlimit.New(ln, maxConns))
	stop()
	cancel()
	<-loaded
	s.grpc.Stop()
	if ctx.Err() != nil && (err == nil || errors.Is(err, grpc.ErrServerStopped)) {
		return nil
	}
	return err
}
