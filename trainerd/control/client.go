package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
)

// Client speaks to the daemon that trains in a logdir.
type Client struct {
	logdir string
	http   *http.Client
}

// NewClient returns a client for the socket in a logdir. Close it.
func NewClient(logdir string) *Client {
	path := filepath.Join(logdir, SocketName)
	return &Client{logdir, &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(path) },
	}}}
}

// Close ends the client's connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NotRunningError says that nobody listens at a logdir's socket.
type NotRunningError struct {
	Logdir string
	Err    error
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no training runs in %s that could be asked; start it with `trainerd run`", e.Logdir)
}

// Unwrap returns what the socket said.
func (e *NotRunningError) Unwrap() error { return e.Err }

// Status returns how the training stands.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	s := new(Status)
	if err := c.do(ctx, http.MethodGet, "status", nil, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Save writes a checkpoint.
func (c *Client) Save(ctx context.Context) (*Saved, error) {
	s := new(Saved)
	if err := c.do(ctx, http.MethodPost, "save", nil, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Do asks for the action with this name, with what its JSON has, and returns
// what the daemon says.
func (c *Client) Do(ctx context.Context, action string, args map[string]any) (string, error) {
	var r Result
	err := c.do(ctx, http.MethodPost, action, args, &r)
	return r.Text, err
}

func (c *Client) do(ctx context.Context, method, action string, args map[string]any, result any) error {
	var body bytes.Buffer
	if args != nil {
		if err := json.NewEncoder(&body).Encode(args); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://trainerd/v1/"+action, &body)
	if err != nil {
		return err
	}
	w, err := c.http.Do(r)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return &NotRunningError{c.logdir, err}
	}
	if err != nil {
		return err
	}
	defer w.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(w.Body, most))
	if err != nil {
		return err
	}
	if w.StatusCode == http.StatusOK {
		return json.Unmarshal(text, result)
	}
	var failure struct{ Error string }
	if json.Unmarshal(text, &failure) != nil || failure.Error == "" {
		return fmt.Errorf("the daemon answers %s", w.Status)
	}
	return errors.New(failure.Error)
}
