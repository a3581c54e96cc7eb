package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// Client talks to the daemon that trains in a logdir.
type Client struct {
	logdir string
	name   string // of the socket
	chief  bool   // it is the one that has the logdir locked
	http   *http.Client
	wait   time.Duration // for the status
}

// answerTime is how long a daemon may take for its status, which it has at hand
// whatever the training does.
const answerTime = 15 * time.Second

// NewClient returns a client for the socket in a logdir. Close it.
func NewClient(dir string) *Client { return newClient(dir, SocketName, true) }

// NewChiefClient returns a client for the chief of a logdir, where a program runs on several nodes and that is
// this one of them. Close it.
func NewChiefClient(dir string, node int) *Client {
	if node == 0 {
		return NewClient(dir)
	}
	return newClient(dir, WorkerSocketName(node), true)
}

// NewFirstNodeClient returns a client for the first node of a program that runs on several,
// which need not be the chief, but listens where a chief does. Close it.
func NewFirstNodeClient(dir string) *Client { return newClient(dir, SocketName, false) }

// NewWorkerClient returns a client for the socket of a worker that is not the
// chief of its logdir. Close it.
func NewWorkerClient(dir string, task int) *Client {
	return newClient(dir, WorkerSocketName(task), false)
}

func newClient(dir, name string, chief bool) *Client {
	path := filepath.Join(dir, name)
	return &Client{dir, name, chief, &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(path) },
	}}, answerTime}
}

// Close ends the client's connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NotRunningError says that nothing listens at a logdir's socket.
type NotRunningError struct {
	Logdir string
	Err    error
	// Other is another logdir in which the job seems to have run, "" for none.
	Other string
}

func (e *NotRunningError) Error() string {
	if e.Other != "" {
		return fmt.Sprintf("no training is running in %s; there is a run in %s, but a relative logdir starts at the current folder: give that folder instead", e.Logdir, e.Other)
	}
	return fmt.Sprintf("no training is running in %s; start it with `trainerd run`", e.Logdir)
}

// Unwrap returns the error of the socket.
func (e *NotRunningError) Unwrap() error { return e.Err }

// UnreachableError says that a process has a logdir locked, but nothing listens at its socket:
// the process is on another host, the socket was removed, or the process has none.
type UnreachableError struct {
	Logdir string
	Socket string        // its name
	Holder logdir.Holder // the process, as far as known
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the training in %s cannot be asked: %v has it, but does not listen at %s here; type the command on its host, or stop it with kill -TERM",
		e.Logdir, e.Holder, e.Socket)
}

// ForeignError says that the daemon of a logdir belongs to another user.
type ForeignError struct {
	Logdir string
	Err    error
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("permission denied: the training in %s answers its own user and root only; type the command as one of them, as with sudo -u USER", e.Logdir)
}

// Unwrap returns the error of the socket.
func (e *ForeignError) Unwrap() error { return e.Err }

// SilentError says that the daemon of a logdir does not answer, for example
// because it was stopped by SIGSTOP or waits for a disk.
type SilentError struct {
	Logdir string
	Waited time.Duration
	Holder logdir.Holder // the process, as far as known
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("the training in %s does not answer within %v: %v may be stopped (kill -CONT continues it), waiting for a disk, or short of memory",
		e.Logdir, e.Waited, e.Holder)
}

// Status returns the state of the training. The error is a [*NotRunningError] if
// there is none, a [*SilentError] if it does not answer, and an [*UnreachableError] if it
// cannot be asked.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	bounded, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	s := new(Status)
	err := c.do(bounded, http.MethodGet, "status", nil, s)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, &SilentError{c.logdir, c.wait, logdir.Named(c.logdir)}
	}
	if err != nil {
		return nil, err
	}
	if c.isOther(s) {
		return nil, c.nobody(errOther)
	}
	return s, nil
}

// errOther says that the socket of a logdir leads to the training in another one.
var errOther = errors.New("the socket is that of a training in another logdir")

// isOther reports whether a status comes from a training in another logdir: a copy of a logdir may
// have a link to the original's socket. In a container, the same logdir may have another path, but
// its lock names the process.
func (c *Client) isOther(s *Status) bool {
	own, err := os.Stat(c.logdir)
	if err != nil {
		return false
	}
	its, err := os.Stat(s.Logdir)
	if err != nil || os.SameFile(own, its) {
		return false
	}
	var locked *logdir.LockedError
	return !c.chief || !errors.As(logdir.Check(c.logdir), &locked) || locked.Holder.PID != s.PID
}

// ask sends a request that has no time limit, after the daemon has answered one that has.
func (c *Client) ask(ctx context.Context, method, action string, args map[string]any, result any) error {
	if _, err := c.Status(ctx); err != nil {
		return err
	}
	return c.do(ctx, method, action, args, result)
}

// Save writes a checkpoint.
func (c *Client) Save(ctx context.Context) (*Saved, error) {
	s := new(Saved)
	if err := c.ask(ctx, http.MethodPost, "save", nil, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Logs calls each with the newest lines of the run's log, at most that many,
// in the JSON of [slog.JSONHandler], and with follow with new ones, until the
// run or ctx ends.
func (c *Client) Logs(ctx context.Context, lines int, follow bool, each func(line []byte) error) error {
	if _, err := c.Status(ctx); err != nil {
		return err
	}
	w, err := c.send(ctx, http.MethodGet, fmt.Sprintf("logs?lines=%d&follow=%t", lines, follow), nil)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return failure(w)
	}
	scanner := bufio.NewScanner(w.Body)
	scanner.Buffer(nil, 2*maxLogBytes)
	for scanner.Scan() {
		if err := each(scanner.Bytes()); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil // it has seen enough
	}
	return scanner.Err()
}

// Do performs the action with this name and JSON arguments, and returns the
// daemon's answer.
func (c *Client) Do(ctx context.Context, action string, args map[string]any) (string, error) {
	var r Result
	err := c.ask(ctx, http.MethodPost, action, args, &r)
	return r.Text, err
}

func (c *Client) do(ctx context.Context, method, action string, args map[string]any, result any) error {
	w, err := c.send(ctx, method, action, args)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return failure(w)
	}
	return json.NewDecoder(io.LimitReader(w.Body, maxAnswer)).Decode(result)
}

// maxAnswer is the longest answer that is read, except for logs. A status with the longest tags is
// shorter, although JSON may write each of their bytes as six.
const maxAnswer = 2 << 20

// send sends a request and returns the answer, whose body is to be closed.
func (c *Client) send(ctx context.Context, method, action string, args map[string]any) (*http.Response, error) {
	var body bytes.Buffer
	if args != nil {
		if err := json.NewEncoder(&body).Encode(args); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://trainerd/v1/"+action, &body)
	if err != nil {
		return nil, err
	}
	w, err := c.http.Do(r)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, c.nobody(err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, &ForeignError{c.logdir, err}
	}
	return w, err
}

// nobody returns the error that explains why nothing listens on the socket.
func (c *Client) nobody(err error) error {
	var locked *logdir.LockedError
	if c.chief && errors.As(logdir.Check(c.logdir), &locked) {
		return &UnreachableError{c.logdir, c.name, locked.Holder}
	}
	return &NotRunningError{Logdir: c.logdir, Err: err}
}

// failure returns the error that an answer describes.
func failure(w *http.Response) error {
	var body struct{ Error string }
	if json.NewDecoder(io.LimitReader(w.Body, maxAnswer)).Decode(&body) != nil || body.Error == "" {
		return fmt.Errorf("the daemon answers %s", w.Status)
	}
	return errors.New(body.Error)
}
