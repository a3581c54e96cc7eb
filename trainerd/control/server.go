package control

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trainerd/trainerd/internal/connlimit"
)

// DefaultHangAfter is the time without a step after which a training counts as
// hung.
const DefaultHangAfter = time.Minute

// Options are the options of a Server.
type Options struct {
	Monitor *Monitor
	// Stopping says what a request to stop does, and is the answer to it.
	Stopping string
	// StopNow ends the process at once. Nil refuses.
	StopNow func()
	// HangAfter is the time without a step after which /healthz reports a hang;
	// zero means DefaultHangAfter.
	HangAfter time.Duration
	// Pprof enables the profiles.
	Pprof bool
	// Log is the log that /v1/logs shows. Nil refuses.
	Log *Log
	// Token is required of each request on TCP. Without one, requests there
	// must name the loopback as their host.
	Token string
}

// Server serves the status and control of a training.
type Server struct {
	o       Options
	http    *http.Server
	closing chan struct{} // closed by Shutdown, for those who follow the log
	long    chan struct{} // one for each request under way that may take long
}

// Limits, so that nobody can block the daemon. A training needs file descriptors for its
// checkpoints, so peers must not be able to use them up either.
const (
	maxBody      = 64 << 10
	maxHeader    = 16 << 10
	readTimeout  = 10 * time.Second // for a peer to send its request
	writeTimeout = 30 * time.Second // for a peer to read its answer
	maxConns     = 64               // of a listener, at a time
	maxLong      = maxConns / 2     // requests that may take long
)

// NewServer returns a server, which does nothing until Serve.
func NewServer(o Options) *Server {
	if o.HangAfter == 0 {
		o.HangAfter = DefaultHangAfter
	}
	s := &Server{o: o, closing: make(chan struct{}), long: make(chan struct{}, maxLong)}
	s.http = &http.Server{
		Handler:        s.guard(s.routes()),
		ReadTimeout:    readTimeout,
		WriteTimeout:   writeTimeout,
		MaxHeaderBytes: maxHeader,
		ConnState:      connlimit.Track,
	}
	s.http.RegisterOnShutdown(sync.OnceFunc(func() { close(s.closing) }))
	return s
}

// Serve serves requests on ln until Shutdown, and closes it. A TCP listener
// should come from [ListenTCP]. Serve may be called for several listeners.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(connlimit.NewHTTP(ln, maxConns)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends Serve once the current requests are answered, or ctx is done.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.o.Monitor.Status()) })
	for name, do := range actions {
		mux.HandleFunc("POST /v1/"+name, s.mayBeLong(func(w http.ResponseWriter, r *http.Request) { s.act(w, r, do) }))
	}
	mux.HandleFunc("POST /v1/stop", func(w http.ResponseWriter, r *http.Request) {
		body, err := s.stop(r)
		reply(w, body, err)
	})
	mux.HandleFunc("GET /v1/logs", s.mayBeLong(s.logs))
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.o.Monitor.metrics.registry, promhttp.HandlerOpts{}))
	if s.o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", s.mayBeLong(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", s.mayBeLong(pprof.Trace))
	}
	mux.HandleFunc(anyPath, func(w http.ResponseWriter, r *http.Request) { failUnknown(w, r, mux) })
	return mux
}

// anyPath is the pattern of all requests that no other pattern is for.
const anyPath = "/"

// failUnknown answers a request for a path that does not exist, or not with this method.
func failUnknown(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != anyPath {
			w.Header().Set("Allow", method)
			fail(w, http.StatusMethodNotAllowed, fmt.Errorf("%s wants %s, not %s", r.URL.Path, method, r.Method))
			return
		}
	}
	fail(w, http.StatusNotFound, fmt.Errorf("there is no %s; there are /healthz, /readyz, /metrics, /v1/status and /v1/logs, and with POST /v1/save and the other commands", r.URL.Path))
}

// mayBeLong refuses what may take long, such as a save to a disk that hangs, while there is
// much of it: some connections stay free for all else.
func (s *Server) mayBeLong(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.long <- struct{}{}:
		default:
			fail(w, http.StatusServiceUnavailable, fmt.Errorf("%d requests are waiting already; try again later", maxLong))
			return
		}
		defer func() { <-s.long }()
		next(w, r)
	}
}

// guard lets only requests through that are allowed.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if _, tcp := local.(*net.TCPAddr); tcp {
			if status, reason := s.refuse(r); status != 0 {
				fail(w, status, errors.New(reason))
				return
			}
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// refuse returns why a request that came by TCP is not served, 0 if it is.
func (s *Server) refuse(r *http.Request) (status int, reason string) {
	if r.Header.Get("Origin") != "" {
		return http.StatusForbidden, "requests of web pages are not served"
	}
	if s.o.Token == "" {
		if !isLoopbackName(r.Host) {
			return http.StatusForbidden, fmt.Sprintf("host %q is not served without a token: use localhost or 127.0.0.1, have a proxy set that as the Host, or start the run with --token-file", r.Host)
		}
		return 0, ""
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.o.Token)) // of equal length, for an equal time
	if !ok || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return http.StatusUnauthorized, "send the token, as in Authorization: Bearer TOKEN"
	}
	return 0, ""
}

// isLoopbackName reports whether a request's host is this machine by a name
// that no other machine can give itself.
func isLoopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// healthz reports a hang: a training that makes no steps although it should.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	st := s.o.Monitor.Status()
	body := map[string]any{"healthy": true, "phase": st.Phase, "idle_seconds": st.Idle}
	status := http.StatusOK
	if !st.Phase.Busy() && st.Idle > s.o.HangAfter.Seconds() {
		body["healthy"], status = false, http.StatusServiceUnavailable
		body["error"] = fmt.Sprintf("no step has ended for %.0f s", st.Idle)
	}
	answer(w, status, body)
}

// readyz reports whether the job trains.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	st := s.o.Monitor.Status()
	status := http.StatusOK
	if _, err := s.o.Monitor.Job(); err != nil {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, map[string]any{"ready": status == http.StatusOK, "phase": st.Phase})
}

// extend gives the peer of a request that has taken long the full time to read what comes.
func extend(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // else the earlier one holds
}

func answer(w http.ResponseWriter, status int, body any) {
	extend(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) // a client that is gone needs no answer
}

func fail(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"error": err.Error()})
}

// decode reads a request's JSON; no body leaves v as it is.
func decode(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("invalid JSON body: %w", err)
	}
	return nil
}
