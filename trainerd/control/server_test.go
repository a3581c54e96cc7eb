package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd"
)

// fakeJob writes down what it is asked for.
type fakeJob struct{ asked []string }

func (j *fakeJob) note(format string, args ...any) {
	j.asked = append(j.asked, fmt.Sprintf(format, args...))
}

func (j *fakeJob) Save(context.Context) (trainerd.SavedCheckpoint, error) {
	j.note("save")
	return trainerd.SavedCheckpoint{Step: 5, Prefix: "/log/model.ckpt-5"}, nil
}
func (j *fakeJob) Pause(context.Context) error  { j.note("pause"); return nil }
func (j *fakeJob) Resume(context.Context) error { j.note("resume"); return nil }
func (j *fakeJob) Set(_ context.Context, key, value string) (string, error) {
	j.note("set %s=%s", key, value)
	if key != "eval.steps" {
		return "", Refusef("%s cannot change", key)
	}
	return key + " is " + value, nil
}
func (j *fakeJob) Keep(step int64) (string, error) {
	j.note("keep %d", step)
	if step == 13 {
		return "", errors.New("disk is full")
	}
	return fmt.Sprintf("/log/model.ckpt-%d", step), nil
}
func (j *fakeJob) Note(_ context.Context, text string) error { j.note("note %s", text); return nil }

// begun returns the monitor of a job that trains.
func begun(t *testing.T) (*Monitor, *fakeJob) {
	t.Helper()
	m, job := NewMonitor("digits", t.TempDir(), 7), &fakeJob{}
	m.OnStop(func() { job.note("stop") })
	m.Begin(job, 0, 1000, "")
	m.Step(1, 0.5, time.Millisecond)
	return m, job
}

// serve runs a server until the test ends.
func serve(t *testing.T, o Options, ln net.Listener) {
	t.Helper()
	s := NewServer(o)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(context.Background()), <-ended); err != nil {
			t.Error(err)
		}
	})
}

func tcp(t *testing.T) (net.Listener, string) {
	t.Helper()
	ln, err := ListenTCP("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	return ln, "http://" + ln.Addr().String()
}

// request returns the status and the body of an answer.
func request(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, strings.TrimSpace(string(text))
}

func TestActions(t *testing.T) {
	for _, c := range []struct {
		name, action, body string
		status             int
		answer, asked      string
	}{
		{"save", "save", "", 200, `"checkpoint":"/log/model.ckpt-5"`, "save"},
		{"pause", "pause", "", 200, "paused", "pause"},
		{"resume", "resume", "", 200, "continues", "resume"},
		{"stop", "stop", "", 200, "saving", "stop"},
		{"stop with a body", "stop", `{"now":false}`, 200, "saving", "stop"},
		{"stop now refused", "stop", `{"now":true}`, 409, "cannot end", ""},
		{"set", "set", `{"key":"eval.steps","value":"9"}`, 200, "eval.steps is 9", "set eval.steps=9"},
		{"set refused", "set", `{"key":"name","value":"9"}`, 409, "name cannot change", "set name=9"},
		{"set nothing", "set", "", 400, "key is missing", ""},
		{"set by number", "set", `{"key":"a","value":9}`, 400, "JSON", ""},
		{"keep", "keep", `{"step":7}`, 200, "/log/model.ckpt-7 is kept", "keep 7"},
		{"keep 0", "keep", `{"step":0}`, 200, "model.ckpt-0", "keep 0"},
		{"keep fails", "keep", `{"step":13}`, 500, "disk is full", "keep 13"},
		{"keep nothing", "keep", "{}", 400, "step is missing", ""},
		{"note", "note", `{"text":"a *b*"}`, 200, "noted", "note a *b*"},
		{"note nothing", "note", `{"text":" "}`, 400, "text is missing", ""},
		{"note too much", "note", `{"text":"` + strings.Repeat("x", maxBody) + `"}`, 400, "too large", ""},
		{"unknown field", "note", `{"txt":"x"}`, 400, "txt", ""},
		{"no JSON", "keep", `step=7`, 400, "JSON", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, job := begun(t)
			ln, url := tcp(t)
			serve(t, Options{Monitor: m, Stopping: "stopping and saving"}, ln)
			status, text := request(t, "POST", url+"/v1/"+c.action, c.body)
			if status != c.status || !strings.Contains(text, c.answer) {
				t.Errorf("answers %d %s, want %d with %q", status, text, c.status, c.answer)
			}
			if got := strings.Join(job.asked, ", "); got != c.asked {
				t.Errorf("the job was asked to %q, want %q", got, c.asked)
			}
		})
	}
}

func TestNotTraining(t *testing.T) {
	m := NewMonitor("digits", "", 1)
	stopped := false
	ln, url := tcp(t)
	serve(t, Options{Monitor: m, StopNow: func() { stopped = true }}, ln)
	for _, action := range []string{"save", "stop"} {
		if status, text := request(t, "POST", url+"/v1/"+action, ""); status != 409 || !strings.Contains(text, "preparing") {
			t.Errorf("%s: %d %s", action, status, text)
		}
	}
	if status, _ := request(t, "GET", url+"/readyz", ""); status != 503 {
		t.Errorf("readyz: %d", status)
	}
	if status, _ := request(t, "POST", url+"/v1/stop", `{"now":true}`); status != 200 || !stopped {
		t.Errorf("stop now: %d, %v", status, stopped)
	}
}

// TestStopOutsideOfTraining has a stop for a run that is not ready, as it waits for servers, and
// for one that is stopping already: it is done, as a signal is.
func TestStopOutsideOfTraining(t *testing.T) {
	for _, phase := range []Phase{Preparing, Stopping, Ended} {
		m, stops := NewMonitor("digits", "", 1), 0
		m.OnStop(func() { stops++ })
		m.Enter(phase)
		ln, url := tcp(t)
		serve(t, Options{Monitor: m}, ln)
		if status, text := request(t, "POST", url+"/v1/stop", ""); status != 200 || stops != 1 {
			t.Errorf("%s: %d %s, %d stops", phase, status, text, stops)
		}
	}
}

func TestGuard(t *testing.T) {
	const token = "0123456789abcdef"
	for _, c := range []struct {
		name, token string
		header      []string
		want        int
	}{
		{"loopback", "", nil, 200},
		{"localhost", "", []string{"Host", "localhost:1"}, 200},
		{"IPv6", "", []string{"Host", "[::1]:1"}, 200},
		{"IPv6 without a port", "", []string{"Host", "[::1]"}, 200},
		{"another name", "", []string{"Host", "evil.example:80"}, 403},
		{"a page", "", []string{"Origin", "http://localhost"}, 403},
		{"token", token, []string{"Authorization", "Bearer " + token}, 200},
		{"token and name", token, []string{"Authorization", "Bearer " + token, "Host", "trainer.example"}, 200},
		{"no token", token, nil, 401},
		{"wrong token", token, []string{"Authorization", "Bearer 0123456789abcdeF"}, 401},
		{"prefix of the token", token, []string{"Authorization", "Bearer 0123"}, 401},
		{"basic", token, []string{"Authorization", token}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, job := begun(t)
			ln, url := tcp(t)
			serve(t, Options{Monitor: m, Token: c.token}, ln)
			if status, _ := request(t, "POST", url+"/v1/pause", "", c.header...); status != c.want || (len(job.asked) > 0) != (c.want == 200) {
				t.Errorf("pause: %d, and the job was asked to %q", status, job.asked)
			}
			for _, path := range []string{"/v1/status", "/metrics", "/healthz"} {
				if status, text := request(t, "GET", url+path, "", c.header...); status != c.want {
					t.Errorf("%s: %d %.100s, want %d", path, status, text, c.want)
				}
			}
		})
	}
}

func TestListenTCP(t *testing.T) {
	if ln, err := ListenTCP("0.0.0.0:0", ""); err == nil {
		ln.Close()
		t.Error("listens for other machines without a token")
	}
	ln, err := ListenTCP("0.0.0.0:0", "secret")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

// Only a training that should make steps, and does not, is unwell.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := begun(t)
		s := NewServer(Options{Monitor: m})
		health := func() int {
			w := newRecorder()
			s.healthz(w, nil)
			healthy, hung := `"healthy":true`, strings.Contains(w.text, "no step has ended for ")
			if w.status != 200 {
				healthy = `"healthy":false`
			}
			if !strings.Contains(w.text, healthy) || hung == (w.status == 200) || w.header.Get("Content-Type") != "application/json" {
				t.Errorf("%d: %s", w.status, w.text)
			}
			return w.status
		}
		time.Sleep(59 * time.Second)
		if got := health(); got != 200 {
			t.Errorf("after 59 s: %d", got)
		}
		time.Sleep(2 * time.Second)
		if got := health(); got != 503 {
			t.Errorf("after 61 s: %d", got)
		}
		m.Step(2, 1, 0)
		if got := health(); got != 200 {
			t.Errorf("after a step: %d", got)
		}
		m.Enter(Saving)
		time.Sleep(time.Hour)
		if got := health(); got != 200 {
			t.Errorf("in a long save: %d", got)
		}
	})
}

// recorder keeps the status of an answer.
type recorder struct {
	header http.Header
	status int
	text   string
}

func newRecorder() *recorder                    { return &recorder{header: make(http.Header)} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { r.text += string(b); return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func TestMetrics(t *testing.T) {
	m, _ := begun(t)
	prefix := filepath.Join(t.TempDir(), "model.ckpt-1")
	for suffix, size := range map[string]int{".index": 10, ".data-00000-of-00001": 100, ".meta": 1000, ".other": 5} {
		if err := os.WriteFile(prefix+suffix, make([]byte, size), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	m.Saved(trainerd.SavedCheckpoint{Step: 1, Prefix: prefix, Time: time.Now(), Took: 20 * time.Millisecond})
	m.Count(func() trainerd.Stats {
		return trainerd.Stats{Stalled: 1500 * time.Millisecond, LongestStall: time.Second / 2, FailedSaves: 2, SkippedSaves: 4,
			Rewinds: 5, EventsDropped: 6, EventsQueued: 7}
	})
	m.Scalar("val/loss", 0.5, 6)
	m.Scalar("val/loss", 0.25, 7)
	m.Scalar("bad", math.NaN(), 7)
	ln, url := tcp(t)
	serve(t, Options{Monitor: m}, ln)
	if status, text := request(t, "GET", url+"/v1/status", ""); status != 200 || !strings.Contains(text, `"scalars":{"bad":{"step":7,"value":"NaN"},"val/loss":{"step":7,"value":0.25}}`) {
		t.Errorf("status %d %s", status, text)
	}
	status, text := request(t, "GET", url+"/metrics", "")
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{
		"trainerd_steps_total 1", "trainerd_step_duration_seconds_count 1", `trainerd_step_duration_seconds_bucket{le="167.77216"} 1`,
		`trainerd_save_duration_seconds_bucket{le="262.144"} 1`, `trainerd_step_duration_seconds_bucket{le="0.00256"} 1`,
		"trainerd_save_duration_seconds_count 1", "trainerd_saves_total 1", "trainerd_saved_bytes_total 1110",
		"trainerd_restarts_total 0", "trainerd_last_checkpoint_age_seconds 0.", `trainerd_phase{phase="training"} 1`, "trainerd_loss 0.5",
		"trainerd_stalled_seconds_total 1.5", "trainerd_longest_stall_seconds 0.5", "trainerd_save_failures_total 2", "trainerd_saves_skipped_total 4",
		`trainerd_scalar{tag="val/loss"} 0.25`, `trainerd_scalar{tag="bad"} NaN`, `trainerd_scalar_step{tag="val/loss"} 7`,
		"trainerd_rewinds_total 5", "trainerd_events_dropped_total 6", "trainerd_events_queue_bytes 7",
		"go_goroutines ", "# TYPE trainerd_steps_total counter",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	if status, _ := request(t, "GET", url+"/debug/pprof/", ""); status != 404 {
		t.Errorf("profiles are served without being asked for: %d", status)
	}
}

// TestPhaseMetric looks for exactly one phase that a training is in, whichever
// it is.
func TestPhaseMetric(t *testing.T) {
	for _, phase := range []Phase{Preparing, Starting, Training, Waiting, Saving, Evaluating, Supervising, Paused, Stopping, Ended} {
		m, _ := begun(t)
		m.Enter(phase)
		ln, url := tcp(t)
		serve(t, Options{Monitor: m}, ln)
		_, text := request(t, "GET", url+"/metrics", "")
		if !strings.Contains(text, fmt.Sprintf("\ntrainerd_phase{phase=%q} 1\n", phase)) {
			t.Errorf("%s is not shown", phase)
		}
	}
}

func TestSocket(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	for _, c := range []struct{ name, logdir, runtime string }{
		{"logdir", t.TempDir(), ""},
		{"a long path", long, ""},
		{"runtime directory", t.TempDir(), t.TempDir()},
		{"runtime directory for a long path", long, t.TempDir()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.MkdirAll(c.logdir, 0o777); err != nil {
				t.Fatal(err)
			}
			m, job := begun(t)
			m.status.Logdir = c.logdir
			client := NewClient(c.logdir)
			defer client.Close()
			var gone *NotRunningError
			if _, err := client.Status(t.Context()); !errors.As(err, &gone) {
				t.Errorf("before: %v", err)
			}
			ln, err := ListenUnix(c.logdir, c.runtime, SocketName)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(c.logdir, SocketName))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			s := NewServer(Options{Monitor: m})
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(ln) }()
			if st, err := client.Status(t.Context()); err != nil || st.Step != 1 || st.PID != 7 {
				t.Errorf("status %+v, %v", st, err)
			}
			if saved, err := client.Save(t.Context()); err != nil || saved.Step != 5 {
				t.Errorf("save: %+v, %v", saved, err)
			}
			if text, err := client.Do(t.Context(), "keep", map[string]any{"step": 3}); err != nil || text != "/log/model.ckpt-3 is kept" {
				t.Errorf("keep: %q, %v", text, err)
			}
			if _, err := client.Do(t.Context(), "set", map[string]any{"key": "a", "value": "b"}); err == nil || err.Error() != "a cannot change" {
				t.Errorf("set: %v", err)
			}
			if other, err := ListenUnix(c.logdir, c.runtime, SocketName); err == nil {
				other.Close()
				t.Error("two listen at a socket")
			}
			if err := errors.Join(s.Shutdown(context.Background()), <-ended); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(filepath.Join(c.logdir, SocketName)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is left: %v", err)
			}
			if len(job.asked) != 3 {
				t.Errorf("asked %q", job.asked)
			}
		})
	}
}

// A link to a socket that is left of a killed process is not an obstacle either, wherever the
// socket is now, and a link that is another's by now stays.
func TestStaleLink(t *testing.T) {
	for _, runtime := range []string{"", t.TempDir()} {
		dir := t.TempDir()
		link := filepath.Join(dir, SocketName)
		if err := os.Symlink(filepath.Join(t.TempDir(), "gone"), link); err != nil {
			t.Fatal(err)
		}
		ln, err := ListenUnix(dir, runtime, SocketName)
		if err != nil {
			t.Fatalf("in %q: %v", runtime, err)
		}
		if runtime == "" {
			ln.Close()
			continue
		}
		if err := errors.Join(os.Remove(link), os.Symlink("of another", link), ln.Close()); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(link); to != "of another" {
			t.Errorf("another's link: %q, %v", to, err)
		}
	}
}

// The socket of a process that was killed is not an obstacle.
func TestStaleSocket(t *testing.T) {
	dir := t.TempDir()
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	client := NewClient(dir)
	defer client.Close()
	var gone *NotRunningError
	if _, err := client.Status(t.Context()); !errors.As(err, &gone) {
		t.Errorf("nobody listens: %v", err)
	}
	ln, err := ListenUnix(dir, "", SocketName)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := os.WriteFile(filepath.Join(dir, SocketName), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if ln, err := ListenUnix(dir, "", SocketName); err == nil {
		ln.Close()
		t.Error("a file that is no socket was replaced")
	}
}

func FuzzRequests(f *testing.F) {
	for _, body := range []string{"", "{}", `{"step":7}`, `{"key":"a","value":"b"}`, `{"text":"x"}`, `{"now":true}`, "[", "null"} {
		f.Add("set", []byte(body))
		f.Add("keep", []byte(body))
	}
	f.Fuzz(func(t *testing.T, action string, body []byte) {
		m, _ := begun(t)
		s := NewServer(Options{Monitor: m})
		r, err := http.NewRequest("POST", "http://trainerd/v1/x", strings.NewReader(string(body)))
		if err != nil {
			t.Skip()
		}
		r.URL.Path = "/v1/" + action
		w := newRecorder()
		s.http.Handler.ServeHTTP(w, r)
		if w.status == 500 && action != "keep" {
			t.Errorf("%s %q: %d", action, body, w.status)
		}
	})
}
