package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/jsonfloat"
)

// Alert is a rule that holds for a run.
type Alert struct {
	Text     string    `json:"text"` // in words; chat programs show this field of a webhook
	Rule     string    `json:"rule"`
	Logdir   string    `json:"logdir"`
	Run      string    `json:"run"`
	Tag      string    `json:"tag,omitempty"`
	Step     *int64    `json:"step,omitempty"`
	Value    *Number   `json:"value,omitempty"`
	WallTime Number    `json:"wall_time"` // of the point, or of the last event
	Time     time.Time `json:"time"`      // when it was found

	began float64 // of the run
}

// Number is a float64 in JSON whatever its value: what JSON lacks is a string.
type Number float64

// MarshalJSON encodes n.
func (n Number) MarshalJSON() ([]byte, error) { return jsonfloat.Marshal(float64(n)) }

// String returns n as TensorBoard writes it.
func (n Number) String() string {
	x := float64(n)
	switch {
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

func (a *Alert) fired(at time.Time, note string) fired {
	return fired{Rule: a.Rule, Run: a.Run, Began: a.began, At: at, Note: note}
}

// Action informs somebody of an alert.
type Action interface {
	Do(ctx context.Context, a *Alert) error
}

// Limits of the actions.
const (
	execTimeout    = 5 * time.Minute
	webhookTimeout = 20 * time.Second
)

// Exec runs a command with the system's shell. The alert is in its environment, as
// TFEVENTS_RULE and so on, and as JSON in its standard input.
type Exec struct {
	Command        string
	Stdout, Stderr io.Writer
}

// Do runs the command and waits until it has ended.
func (e *Exec) Do(ctx context.Context, a *Alert) error {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", e.Command)
	if runtime.GOOS == "windows" {
		cmd = exec.CommandContext(ctx, "cmd", "/C", e.Command)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(text, '\n')), e.Stdout, e.Stderr
	cmd.Env = append(os.Environ(), a.environment()...)
	cmd.WaitDelay = time.Second // for children that hold its output open
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("command %q: %w", e.Command, err)
	}
	return nil
}

func (a *Alert) environment() []string {
	step, value := "", ""
	if a.Step != nil {
		step = strconv.FormatInt(*a.Step, 10)
	}
	if a.Value != nil {
		value = a.Value.String()
	}
	list := []string{
		"TFEVENTS_TEXT=" + a.Text, "TFEVENTS_RULE=" + a.Rule, "TFEVENTS_LOGDIR=" + a.Logdir, "TFEVENTS_RUN=" + a.Run,
		"TFEVENTS_TAG=" + a.Tag, "TFEVENTS_STEP=" + step, "TFEVENTS_VALUE=" + value,
		"TFEVENTS_WALL_TIME=" + strconv.FormatFloat(float64(a.WallTime), 'f', -1, 64),
	}
	for i, v := range list {
		list[i] = forEnvironment(v)
	}
	return list
}

// maxVariable is how much of a variable a command gets: Linux starts none with one of 128 KiB.
const maxVariable = 32 << 10

// forEnvironment returns a variable as the system takes it. A tag may have any bytes and any length; the JSON
// has all of it.
func forEnvironment(v string) string {
	v = strings.ReplaceAll(v, "\x00", `\x00`)
	if len(v) <= maxVariable {
		return v
	}
	return strings.ToValidUTF8(v[:maxVariable], "") + "..."
}

// Webhook posts an alert as JSON to a URL.
type Webhook struct{ URL *url.URL }

// ParseWebhook returns the action for a URL.
func ParseWebhook(text string) (*Webhook, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("want a URL that begins with https:// or http://")
	}
	return &Webhook{u}, nil
}

// Do posts the alert. The URL may be a secret: errors name its host alone.
func (w *Webhook) Do(ctx context.Context, a *Alert) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL.String(), bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if inner, ok := err.(*url.Error); ok {
			err = inner.Err
		}
		return fmt.Errorf("webhook at %s: %w", w.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Errorf("webhook at %s: %s: %s", w.URL.Host, resp.Status, bytes.TrimSpace(said))
	}
	return nil
}
