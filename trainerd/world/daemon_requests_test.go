//go:build unix

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// daemonEvents are what may happen in a life of a job: what happens to the disk, and
// what people ask for.
var daemonEvents = append(diskEvents(),
	&event{name: "sigterm", ask: (*daemonLife).sendSignal},
	&event{name: "stop", ask: (*daemonLife).askStop},
	&event{name: "save", ask: (*daemonLife).askSave},
	&event{name: "pause", ask: (*daemonLife).askPause},
	&event{name: "set", ask: (*daemonLife).askSet},
	&event{name: "keep", ask: (*daemonLife).askKeep},
	&event{name: "note", ask: (*daemonLife).askNote},
	&event{name: "second-run", ask: (*daemonLife).secondRun},
	&event{name: "lock-removed", ask: (*daemonLife).removeLock},
)

// diskEvents are the events of the library's world that happen to the disk.
func diskEvents() (all []*event) {
	for _, e := range events {
		if e.disk != nil {
			all = append(all, e)
		}
	}
	return all
}

// ask does what the event of the life says when its step is reached.
func (l *daemonLife) ask(ctx context.Context) error {
	if l.event.ask == nil {
		return nil
	}
	select {
	case <-l.ended:
		return nil
	case <-l.reached:
	}
	return l.event.ask(l, context.WithoutCancel(ctx))
}

func (l *daemonLife) setStopped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}

func (l *daemonLife) isStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

func (l *daemonLife) newestStep() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.step
}

// serve answers at the network of the life.
func (l *daemonLife) serve(*slog.Logger) (end func()) {
	return serveControl(l.monitor, l.network, l.note)
}

// serveControl answers requests at a network, until it is ended.
func serveControl(monitor *control.Monitor, network *memoryListener, note func(error)) (end func()) {
	server := control.NewServer(control.Options{Monitor: monitor, Log: control.NewLog()})
	var serving sync.WaitGroup
	serving.Go(func() { note(server.Serve(network)) })
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			note(err)
		}
		serving.Wait()
	}
}

// request sends a request, and returns the answer; 0 is for none.
func (l *daemonLife) request(method, path, body string) (status int, answer []byte) {
	return l.network.request(method, path, body)
}

// request sends a request to the listener, and returns the answer; 0 is for none.
func (n *memoryListener) request(method, path, body string) (status int, answer []byte) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.dial}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequest(method, "http://localhost/"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, answer
}

// post has an action done. That the run ends, or is not there yet, is not an error.
func (l *daemonLife) post(action, body string) error {
	status, answer := l.request(http.MethodPost, "v1/"+action, body)
	if status == 0 || status == http.StatusOK || status == http.StatusConflict || l.fs.Failed() != "" {
		return nil
	}
	return broke("%s %s is answered by %d %s", action, body, status, answer)
}

func (l *daemonLife) sendSignal(context.Context) error {
	l.setStopped()
	l.stop(trainerd.StopRequest("SIGTERM"))
	return nil
}

func (l *daemonLife) askStop(context.Context) error {
	l.setStopped()
	return l.post("stop", "")
}

// askNote writes a note, which a logdir that is being removed cannot take.
func (l *daemonLife) askNote(context.Context) error {
	err := l.post("note", `{"text": "a note"}`)
	if l.event.is("logdir-removed") {
		return nil
	}
	return err
}

func (l *daemonLife) askSave(context.Context) error {
	before := l.newestStep()
	status, answer := l.request(http.MethodPost, "v1/save", "")
	var saved control.Saved
	if status != http.StatusOK {
		return nil
	}
	if err := json.Unmarshal(answer, &saved); err != nil {
		return broke("save is answered by %s", answer)
	}
	if saved.Step < before-1 {
		return broke("a save that was asked for at step %d is of step %d", before, saved.Step)
	}
	return nil
}

func (l *daemonLife) freeze(frozen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = frozen
}

func (l *daemonLife) askPause(context.Context) error {
	if status, _ := l.request(http.MethodPost, "v1/pause", ""); status != http.StatusOK {
		return nil
	}
	l.freeze(true)
	time.Sleep(between(l.rnd, time.Second, 30*time.Hour))
	status, answer := l.request(http.MethodGet, "v1/status", "")
	gaveUp := l.fs.Failed() != "" && strings.Contains(string(answer), `"stopping"`) // the disk has failed too often
	if !strings.Contains(string(answer), `"paused"`) && !gaveUp && status == http.StatusOK {
		return broke("the status in a pause is %s", answer)
	}
	l.freeze(false)
	return l.post("resume", "")
}

// askSet changes a setting that must not matter, or the learning rate to what it is.
func (l *daemonLife) askSet(context.Context) error {
	settings := [][2]string{{"supervisor.save_model_steps", fmt.Sprint(1 + l.rnd.IntN(9))}}
	if every := l.keys["supervisor.save_model_secs"]; every != "0" {
		settings = append(settings, [2]string{"supervisor.save_model_secs", fmt.Sprint(l.plan.during(l.rnd, 50).Seconds())})
	}
	settings = append(settings, [2]string{"supervisor.save_summaries_steps", fmt.Sprint(1 + l.rnd.IntN(9))},
		[2]string{"supervisor.save_summaries_secs", fmt.Sprint(l.plan.during(l.rnd, 50).Seconds())})
	if l.plan.evaluates() && l.keys["train.early_stopping"] == "" {
		settings = append(settings, [2]string{"eval.steps", fmt.Sprint(1 + l.rnd.IntN(9))}, [2]string{"eval.secs", fmt.Sprint(l.plan.during(l.rnd, 50).Seconds())})
	}
	if rate := l.keys["model.learning_rate"]; rate != "" && l.keys["model.schedule"] == "" && l.keys["model.warmup_steps"] == "" {
		settings = append(settings, [2]string{"learning_rate", rate})
	}
	s := settings[l.rnd.IntN(len(settings))]
	l.mu.Lock()
	l.changedEval = l.changedEval || strings.HasPrefix(s[0], "eval")
	l.changedSummaries = l.changedSummaries || strings.HasPrefix(s[0], "supervisor.save_summaries")
	l.mu.Unlock()
	return l.post("set", fmt.Sprintf(`{"key": %q, "value": %q}`, s[0], s[1]))
}

// askKeep pins the newest checkpoint, which then stays to the end of the life.
func (l *daemonLife) askKeep(context.Context) error {
	saved := l.monitor.Status().Saved
	if saved == nil {
		return nil
	}
	if status, _ := l.request(http.MethodPost, "v1/keep", fmt.Sprintf(`{"step": %d}`, saved.Step)); status != http.StatusOK {
		return nil
	}
	<-l.ended
	if files, err := filepath.Glob(saved.Checkpoint + "*"); err != nil || !slices.ContainsFunc(files, isData) {
		return broke("checkpoint %s was kept on request and has the files %v, %v", saved.Checkpoint, files, err)
	}
	return nil
}

// secondRun starts the job once more, which must change nothing.
func (l *daemonLife) secondRun(ctx context.Context) error {
	if l.defect.unlocks() {
		os.Remove(filepath.Join(l.dir, logdir.LockFile))
	}
	c, err := config.Load(l.config, nil)
	if err != nil {
		return err
	}
	err = daemon.Run(ctx, c, daemon.RunOptions{Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler), FS: readOnly{}})
	select {
	case <-l.ended:
		return nil // the first has ended meanwhile
	default:
	}
	if code := daemon.ExitCode(err); code != daemon.ExitInUse && l.newestStep() < l.trace.last && !l.isStopped() {
		return broke("a second run ends with exit code %d, want %d: %v", code, daemon.ExitInUse, err)
	}
	return nil
}

// readOnly is a disk that takes nothing, but for names that are there.
type readOnly struct{}

func (readOnly) Create(string) (atomicfile.File, error) { return nil, syscall.EROFS }
func (readOnly) Rename(string, string) error            { return syscall.EROFS }
func (readOnly) Remove(string) error                    { return syscall.EROFS }
func (readOnly) Mkdir(string) error                     { return syscall.EROFS }
func (readOnly) SyncDir(string) error                   { return nil }

// removeLock removes the lock file. A while later the logdir is locked again.
func (l *daemonLife) removeLock(ctx context.Context) error {
	if err := os.Remove(filepath.Join(l.dir, logdir.LockFile)); err != nil {
		return nil // the run has ended
	}
	select {
	case <-l.ended:
		return nil
	case <-time.After(10 * time.Second):
	}
	return l.secondRun(ctx)
}

// lookOn looks at the run now and then, as monitoring does.
func (l *daemonLife) lookOn() error {
	rnd := l.plan.source(fmt.Sprint("onlooker ", l.number))
	if rnd.IntN(2) == 0 {
		return nil
	}
	every := l.plan.during(rnd, 100)
	for {
		select {
		case <-l.ended:
			return nil
		case <-time.After(every):
		}
		path := []string{"v1/status", "metrics", "healthz", "readyz", "v1/logs"}[rnd.IntN(5)]
		if status, answer := l.request(http.MethodGet, path, ""); status != 0 && status != http.StatusOK && status != http.StatusServiceUnavailable {
			return broke("%s is answered by %d %s", path, status, answer)
		}
	}
}

// A memoryListener is a network of one process.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newMemoryListener() *memoryListener {
	l := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// dial connects, as long as somebody listens.
func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
	case <-ctx.Done():
	case <-time.After(time.Minute): // nobody is there yet
	}
	return nil, errors.Join(here.Close(), there.Close(), net.ErrClosed)
}

// Accept implements [net.Listener].
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *memoryListener) Close() error { l.close(); return nil }

// Addr implements [net.Listener].
func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
