//go:build unix

package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A clusterHistory is a plan of a job on servers that is carried out.
type clusterHistory struct {
	*place
	plan    *clusterPlan
	defect  *clusterDefect // planted; nil for none
	keys    map[string]string
	cluster *simCluster
	tasks   []*trainer
	story   slog.Handler // may be nil

	mu        sync.Mutex
	broken    error           // the first rule
	made      map[int]int64   // steps that each worker has made
	saved     int64           // the newest step that was announced; -1 for none
	servers   string          // the lives of the parameter servers that the following is about
	ready     bool            // the chief has made the model ready there
	taken     time.Time       // when it was last about to make it ready
	highest   int64           // step of a model that was ready; -1 for none
	tagged    map[string]bool // tags that models have had
	complete  bool            // the chief's job is
	homeless  bool            // the logdir was removed, and the chief has not made it again
	unsaved   bool            // nor has it saved since
	forgotten bool            // a chief has started since: it knows nothing of the model
	lostPast  bool            // a parameter server was lost after that
}

// run carries out a plan in a fresh folder, and returns the first rule that was broken.
func (p *clusterPlan) run(t *testing.T, planted *clusterDefect, story *slog.Logger) (o outcome, err error) {
	h := &clusterHistory{place: newPlace(t), plan: p, defect: planted, keys: p.clusterKeys(0), saved: -1, highest: -1, made: map[int]int64{}, tagged: map[string]bool{}}
	defer h.leave()
	if story != nil {
		h.story = story.Handler()
	}
	if err := h.lay(); err != nil {
		return o, err
	}
	files := openFiles()
	synctest.Test(t, func(t *testing.T) { err = h.live(t.Context()) })
	for number, name := range openFiles() {
		if _, before := files[number]; !before && filepath.IsAbs(name) && err == nil {
			err = broke("a file is left open: %s", name)
		}
	}
	if err == nil {
		err = h.judgeEnd(t.Context())
	}
	return h.outcome(), err
}

// lay writes what the job reads, and a config for each task.
func (h *clusterHistory) lay() error {
	dir := filepath.Join(h.root, "job")
	h.others = 1
	if err := errors.Join(os.Mkdir(dir, 0o777), h.plan.kind.lay(dir)); err != nil {
		return err
	}
	for task := range h.plan.workers {
		text := tomlOf(h.plan.clusterKeys(task), h.dir)
		if err := os.WriteFile(h.configOf(task), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (h *clusterHistory) configOf(task int) string {
	return filepath.Join(h.root, "job", fmt.Sprintf("job%d.toml", task))
}

// live starts servers and tasks, lets happen what is to, and waits for the end.
func (h *clusterHistory) live(ctx context.Context) (err error) {
	network := newSimNetwork(h.plan.source("network"), h.plan.latency)
	h.cluster = newSimCluster(network, h.plan.source("servers"), h.plan.ps, h.plan.workers, h.plan.stepTime)
	h.cluster.observe = h.observe
	h.defect.overServers(h)
	for _, device := range slices.Sorted(maps.Keys(h.cluster.servers)) {
		h.cluster.servers[device].start()
	}
	for task := range h.plan.workers {
		h.tasks = append(h.tasks, &trainer{clusterHistory: h, task: task, host: fmt.Sprint("trainerd", task)})
		h.tasks[task].start(ctx)
	}
	defer func() {
		err = errors.Join(err, h.end())
		if h.broken != nil {
			err = h.broken
		}
	}()
	for _, l := range h.plan.lives {
		rnd := h.plan.source(fmt.Sprint("life ", l.number))
		if err := h.suffer(ctx, l, rnd); err != nil {
			return fmt.Errorf("life %d (%s): %w", l.number, l.event.name, err)
		}
	}
	return h.awaitComplete()
}

// suffer lets something happen after some steps, and wants all tasks to make steps
// afterwards.
func (h *clusterHistory) suffer(ctx context.Context, l life, rnd *rand.Rand) error {
	if err := h.await(func() bool { return h.highest >= rnd.Int64N(h.plan.lastStep()) }); err != nil {
		return err
	}
	time.Sleep(time.Duration(rnd.Int64N(int64(5 * time.Second))))
	h.say("it begins", "what", l.event.name)
	undo, err := l.event.deed(h, ctx, rnd)
	h.suffered(true)
	if err != nil {
		return err
	}
	time.Sleep(between(rnd, 100*time.Millisecond, 2*time.Minute))
	if undo != nil {
		err = undo()
	}
	h.say("it is over", "what", l.event.name, "err", err)
	if err != nil {
		return err
	}
	h.mu.Lock()
	before := maps.Clone(h.made)
	h.mu.Unlock()
	return h.await(func() bool {
		for task := range h.tasks {
			if h.made[task] <= before[task] {
				return false
			}
		}
		return true
	})
}

func (h *clusterHistory) say(message string, args ...any) {
	if h.story != nil {
		slog.New(h.story).Info(message, args...)
	}
}

// patience is how long a training may make no progress of its own, once nothing
// disturbs it any more.
func (h *clusterHistory) patience() time.Duration { return 20*time.Minute + 200*h.plan.stepTime }

// await waits for a condition, which is asked with mu held, or for the chief to
// complete the job.
func (h *clusterHistory) await(done func() bool) error {
	for deadline := time.Now().Add(h.patience()); ; time.Sleep(time.Second) {
		h.mu.Lock()
		is, broken, behind := done() || h.complete, h.broken, h.highest < h.plan.lastStep()
		h.mu.Unlock()
		if behind {
			h.startFinished()
		}
		switch {
		case broken != nil:
			return broken
		case is:
			return nil
		case time.Now().After(deadline):
			h.mu.Lock()
			defer h.mu.Unlock()
			return broke("the training makes no progress: workers made %v steps, the model is at step %d", h.made, h.highest)
		}
	}
}

// startFinished starts workers that have made the last step, and have ended, once more:
// the servers have lost the model before the chief has saved that step.
func (h *clusterHistory) startFinished() {
	for _, t := range h.tasks[1:] {
		if !t.runs() && !t.killed && !t.stopped {
			t.start(context.Background())
		}
	}
}

// awaitComplete waits for all tasks to end.
func (h *clusterHistory) awaitComplete() error {
	for step := int64(-2); ; {
		h.mu.Lock()
		over, past := h.complete, step
		step = h.highest
		h.mu.Unlock()
		if over {
			break
		}
		if past == step {
			return broke("the training makes no progress after step %d", step)
		}
		if err := h.await(func() bool { return h.highest > step }); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.lostPast = h.lostPast || h.cluster.parameterServers() != h.servers // a worker that waits may have asked none of them
	lost := h.lostPast
	h.mu.Unlock()
	for _, task := range h.tasks {
		if lost {
			task.terminate() // nobody makes the model again that it would wait for
		}
		if err := task.awaitEnd(h.patience()); err != nil {
			return err
		}
	}
	return nil
}

// end ends what is there, whatever has happened.
func (h *clusterHistory) end() error {
	var errs []error
	for _, task := range h.tasks {
		task.kill(never)
		errs = append(errs, task.awaitEnd(time.Hour))
	}
	for _, s := range h.cluster.servers {
		s.kill(never)
	}
	time.Sleep(2 * time.Minute) // for connections that are half open
	return errors.Join(errs...)
}

func never() bool { return false }

// note keeps the first rule that was broken.
func (h *clusterHistory) note(err error) {
	if err == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noteLocked(err)
}

func (h *clusterHistory) noteLocked(err error) {
	if h.broken == nil && err != nil {
		h.broken = err
	}
}

// parameterServers names the lives of the servers that hold a model.
func (c *simCluster) parameterServers() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lives := map[string]int{}
	for d, s := range c.servers {
		lives[d] = s.life
	}
	return livesOf(lives)
}

func (o *tfSession) parameterServers() string { return livesOf(o.lives) }

func livesOf(lives map[string]int) (text string) {
	for _, d := range slices.Sorted(maps.Keys(lives)) {
		if d[:len("/job:ps")] == "/job:ps" {
			text += fmt.Sprint(d, " ", lives[d], " ")
		}
	}
	return text
}

// task returns the number of the worker whose session it is.
func (o *tfSession) task() (n int) {
	fmt.Sscanf(o.master.host, "worker%d", &n)
	return n
}
