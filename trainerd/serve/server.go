package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trainerd/trainerd/internal/connlimit"
	"github.com/trainerd/trainerd/trainerd/predict"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Limits on requests, so that nobody can block the server.
const (
	maxHeader      = 16 << 10
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute // to read one, and to answer it
	idleTimeout    = 2 * time.Minute
	maxRunning     = 32 // requests that are answered at a time; others wait
	maxConns       = 1024
	smallBody      = 1 << 20 // a body that is read at once
)

// Options are the options of a Server.
type Options struct {
	Source *Source
	Name   string // of the model
	// MaxBody limits the size of a request, in bytes; 0 means 64 MiB, or 1/128 of the memory. So
	// many bytes are the most, too, that all requests above 1 MiB have in memory at a time.
	MaxBody int64
	Log     *slog.Logger // nil discards
}

// Server answers predictions.
type Server struct {
	o       Options
	http    *http.Server
	metrics *metrics
	running chan struct{}
	large   *bodyRoom
}

// NewServer returns a server, which does nothing until Serve.
func NewServer(o Options) *Server {
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, metrics: newMetrics(o.Source, o.Name), running: make(chan struct{}, maxRunning), large: newBodyRoom(o.MaxBody)}
	s.http = &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: 2 * requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnState: connlimit.Track, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s
}

// Serve answers requests on ln until Shutdown, and closes it.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(connlimit.NewHTTP(ln, maxConns)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends Serve once the current requests are answered; if ctx is done
// before that, the connections are cut.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(modelsPath, s.model)
	metrics := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
	mux.Handle("GET /monitoring/prometheus/metrics", metrics)
	mux.Handle("GET /metrics", metrics)
	ok := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /readyz", ok) // there is a model from the beginning
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "Not found: %s; predictions are at %s", r.URL.Path, PredictPath(s.o.Name))
	})
	return mux
}

// PredictPath returns where a model with a name is asked for predictions, as a URL has it.
func PredictPath(name string) string {
	return (&url.URL{Path: modelsPath + name + ":predict"}).EscapedPath()
}

// modelsPath is where the models are.
const modelsPath = "/v1/models/"

// model answers for /v1/models/NAME[/versions/N][:predict|:classify|:regress|/metadata].
func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	rest, ok := s.cutName(strings.TrimPrefix(r.URL.Path, modelsPath))
	if !ok {
		asked, _, _ := strings.Cut(rest, ":")
		asked, _, _ = strings.Cut(asked, "/")
		fail(w, http.StatusNotFound, "Servable not found for request: Latest(%s); the model is called %s", asked, s.o.Name)
		return
	}
	path, verb, _ := strings.Cut(rest, ":")
	parts, version := strings.Split(path, "/")[1:], ""
	if len(parts) >= 2 && parts[0] == "versions" {
		version, parts = parts[1], parts[2:]
	}
	h, err := s.use(version)
	if err != nil {
		fail(w, http.StatusNotFound, "%v", err)
		return
	}
	what := strings.Join(parts, "/")
	if what == "" && isVerb(verb) && r.Method == http.MethodPost {
		s.o.Source.release(h) // it may be replaced while the body comes, and would take as much memory again
		s.predict(w, r, version, verb)
		return
	}
	defer s.o.Source.release(h)
	switch {
	case what == "" && verb == "" && r.Method == http.MethodGet:
		s.status(w, h)
	case what == "metadata" && verb == "" && r.Method == http.MethodGet:
		s.metadata(w, h)
	case what == "" && isVerb(verb), what == "" && verb == "", what == "metadata" && verb == "":
		fail(w, http.StatusMethodNotAllowed, "%s is not the method for %s", r.Method, r.URL.Path)
	default:
		fail(w, http.StatusNotFound, "Malformed request: %s %s", r.Method, r.URL.Path)
	}
}

// use returns the current model, which is to be released, if it has a version; "" means any.
func (s *Server) use(version string) (*held, error) {
	h := s.o.Source.use()
	if version == "" || version == strconv.FormatInt(h.version, 10) {
		return h, nil
	}
	defer s.o.Source.release(h)
	return nil, &versionError{s.o.Name, version, h.version}
}

// versionError says, as TensorFlow Serving does, that a version is not there.
type versionError struct {
	model, asked string
	current      int64
}

func (e *versionError) Error() string {
	return fmt.Sprintf("Servable not found for request: Specific(%s, %s); the version is %d", e.model, e.asked, e.current)
}

// cutName returns what comes after the model's name, which may have a ":" or "/" itself, or
// the whole path if another model is meant.
func (s *Server) cutName(path string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, s.o.Name)
	if !ok || rest != "" && rest[0] != '/' && rest[0] != ':' {
		return path, false
	}
	return rest, true
}

// fail answers with an error, as TensorFlow Serving does.
func fail(w http.ResponseWriter, code int, format string, args ...any) {
	writeJSON(w, code, map[string]string{"error": fmt.Sprintf(format, args...)})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v) // what fails here is the connection
}

func (s *Server) status(w http.ResponseWriter, h *held) {
	type status struct {
		ErrorCode    string `json:"error_code"`
		ErrorMessage string `json:"error_message"`
	}
	type version struct {
		Version string `json:"version"`
		State   string `json:"state"`
		Status  status `json:"status"`
	}
	all := []version{{strconv.FormatInt(h.version, 10), "AVAILABLE", status{"OK", ""}}}
	writeJSON(w, http.StatusOK, map[string]any{"model_version_status": all})
}

// predict answers a request for predictions.
func (s *Server) predict(w http.ResponseWriter, r *http.Request, version, verb string) {
	begun := time.Now()
	code, err := s.answer(w, r, version, verb)
	status := "OK"
	if err != nil {
		status = statusName(code)
		fail(w, code, "%v", err)
	}
	s.metrics.answered(status, time.Since(begun))
}

// answer writes the predictions, or returns why there are none.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, version, verb string) (code int, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		leave, ok := s.large.take(ctx, s.sizeOf(r))
		if !ok {
			return http.StatusServiceUnavailable, errors.New("too many large requests are running")
		}
		defer leave()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes; send fewer instances at a time", large.Limit)
	case err != nil:
		return http.StatusBadRequest, fmt.Errorf("the request cannot be read: %w", err)
	}
	if !take(ctx, s.running) {
		return http.StatusServiceUnavailable, errors.New("too many requests are running")
	}
	defer func() { <-s.running }()
	h, err := s.use(version)
	if err != nil {
		return http.StatusNotFound, err
	}
	defer s.o.Source.release(h)
	q, err := parse(verb, body, h.Model)
	if err != nil {
		return http.StatusBadRequest, err
	}
	ran := time.Now()
	out, err := q.model.Run(ctx, q.inputs)
	s.metrics.ran(time.Since(ran))
	if err != nil {
		return codeOf(err), err
	}
	answer, err := q.response(out)
	if err != nil {
		return http.StatusBadRequest, err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer) // what fails here is the connection
	return http.StatusOK, nil
}

// sizeOf returns how large the body of a request may be.
func (s *Server) sizeOf(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return s.o.MaxBody
	}
	return min(r.ContentLength, s.o.MaxBody)
}

// take takes one of the places unless none is free until ctx is done.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// codeOf returns the HTTP status for an error of a run.
func codeOf(err error) int {
	var input *predict.InputError
	switch {
	case errors.As(err, &input), errors.Is(err, session.ErrInvalidArgument):
		return http.StatusBadRequest
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, session.ErrCancelled), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func statusName(code int) string {
	switch code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return "INVALID_ARGUMENT"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	}
	return "INTERNAL"
}
