//go:build unix

package world

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// clusterEvents are what may happen to a cluster. Each deed returns what ends it; nil
// for nothing.
var clusterEvents = []*event{
	{name: "kill-server", deed: (*clusterHistory).killServer},
	{name: "freeze-server", deed: (*clusterHistory).freezeServer},
	{name: "kill-task", deed: (*clusterHistory).killTask},
	{name: "power-cut-of-the-chief", deed: (*clusterHistory).cutPower},
	{name: "stop-task", deed: (*clusterHistory).stopTask, single: true},
	{name: "stop-all", deed: (*clusterHistory).stopAll, single: true},
	{name: "cut-off", deed: (*clusterHistory).cutOff},
	{name: "connections-break", deed: (*clusterHistory).breakConnections},
	{name: "connections-refused", deed: (*clusterHistory).refuseConnections},
	{name: "slow-network", deed: (*clusterHistory).slowNetwork},
	{name: "second-chief", deed: (*clusterHistory).secondChief},
	{name: "two-at-once", deed: (*clusterHistory).twoAtOnce, single: true},
	{name: "two-at-once", deed: (*clusterHistory).twoAtOnce, single: true},
}

// laterClusterEvents are those that newClusterPlan adds.
var laterClusterEvents = []*event{{name: "logdir-removed", deed: (*clusterHistory).removeLogdir}}

type undo func() error

func (h *clusterHistory) anyServer(rnd *rand.Rand) *tfServer {
	names := slices.Sorted(maps.Keys(h.cluster.servers))
	return h.cluster.servers[names[rnd.IntN(len(names))]]
}

func coin(rnd *rand.Rand) func() bool { return func() bool { return rnd.IntN(2) == 0 } }

func (h *clusterHistory) killServer(_ context.Context, rnd *rand.Rand) (undo, error) {
	s := h.anyServer(rnd)
	s.kill(coin(rnd))
	return func() error { s.kill(never); s.start(); return nil }, nil
}

func (h *clusterHistory) freezeServer(_ context.Context, rnd *rand.Rand) (undo, error) {
	s := h.anyServer(rnd)
	s.freeze(true)
	return func() error { s.freeze(false); return nil }, nil
}

func (h *clusterHistory) killTask(ctx context.Context, rnd *rand.Rand) (undo, error) {
	return h.tasks[rnd.IntN(len(h.tasks))].killAndReturn(ctx, false, never)
}

func (h *clusterHistory) cutPower(ctx context.Context, rnd *rand.Rand) (undo, error) {
	return h.tasks[0].killAndReturn(ctx, true, func() bool { return true })
}

// killAndReturn kills a task, which starts again in the end.
func (t *trainer) killAndReturn(ctx context.Context, power bool, halfOpen func() bool) (undo, error) {
	t.kill(halfOpen)
	return func() error {
		t.kill(halfOpen) // if it was started meanwhile
		return t.again(ctx, power)
	}, nil
}

// again starts a task once more, unless its job is complete.
func (t *trainer) again(ctx context.Context, power bool) error {
	if err := t.awaitEnd(30 * time.Minute); err != nil {
		return err
	}
	if err := t.settle(ctx, power); err != nil {
		return err
	}
	if t.killed || t.stopped {
		t.start(ctx)
	}
	return nil
}

// stopTask sends SIGTERM to a task while all servers answer. It ends soon, and
// starts again later.
func (h *clusterHistory) stopTask(ctx context.Context, rnd *rand.Rand) (undo, error) {
	t := h.tasks[rnd.IntN(len(h.tasks))]
	if !t.runs() {
		return nil, nil
	}
	t.terminate()
	return func() error { return t.again(ctx, false) }, t.awaitEnd(t.stopsWithin())
}

// stopAll sends SIGTERM to one task after the other. The last may be in a step that
// waits for the others.
func (h *clusterHistory) stopAll(ctx context.Context, rnd *rand.Rand) (undo, error) {
	tasks := slices.Clone(h.tasks)
	rnd.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	for _, t := range tasks {
		if t.runs() {
			t.terminate()
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Second))))
	}
	for _, t := range tasks {
		if err := t.awaitEnd(t.stopsWithin()); err != nil {
			return nil, err
		}
	}
	return func() error {
		for _, t := range tasks {
			if err := t.again(ctx, false); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// stopsWithin is how long a task may take to stop while all servers answer: a step,
// and for a chief two saves on a slow disk, and an evaluation, which ends with the grace.
func (t *trainer) stopsWithin() time.Duration {
	if t.task > 0 {
		return 40*time.Second + 4*t.plan.stepTime
	}
	most := 2*time.Minute + 4*t.plan.stepTime
	if t.keys["data.test_fraction"] == "" && t.keys["data.test_rows"] == "" {
		return most
	}
	if secs, err := strconv.Atoi(t.keys["supervisor.stop_grace_secs"]); err == nil {
		return most + time.Duration(secs)*time.Second
	}
	return most + trainerd.DefaultStopGrace
}

// removeLogdir removes the logdir of a chief that saves by itself: a server makes it
// again without its lock. The job continues as it is.
func (h *clusterHistory) removeLogdir(context.Context, *rand.Rand) (undo, error) {
	chief := h.tasks[0]
	if !chief.runs() || chief.isKilled() || h.keys["cluster.checkpoint_via"] == "" {
		return nil, nil
	}
	h.mu.Lock()
	h.homeless, h.unsaved, h.saved = true, true, -1
	h.mu.Unlock()
	h.announced = session.NoStep
	chief.fs.Mark(0)
	chief.removed = true
	return nil, removeDir(chief.fs, h.dir)
}

// cutOff cuts a host off the network.
func (h *clusterHistory) cutOff(_ context.Context, rnd *rand.Rand) (undo, error) {
	host := h.anyHost(rnd)
	h.cluster.network.stall(host, true)
	return func() error { h.cluster.network.stall(host, false); return nil }, nil
}

func (h *clusterHistory) anyHost(rnd *rand.Rand) string {
	if rnd.IntN(2) == 0 {
		return h.anyServer(rnd).host
	}
	return h.tasks[rnd.IntN(len(h.tasks))].host
}

func (h *clusterHistory) breakConnections(_ context.Context, rnd *rand.Rand) (undo, error) {
	h.cluster.network.sever(h.anyHost(rnd), coin(rnd))
	return nil, nil
}

// refuseConnections breaks the connections of a host, which then gets no new ones.
func (h *clusterHistory) refuseConnections(_ context.Context, rnd *rand.Rand) (undo, error) {
	s := h.anyServer(rnd)
	h.cluster.network.refuse(s.host, true)
	h.cluster.network.sever(s.host, coin(rnd))
	return func() error { h.cluster.network.refuse(s.host, false); return nil }, nil
}

func (h *clusterHistory) slowNetwork(context.Context, *rand.Rand) (undo, error) {
	n := h.cluster.network
	setLatency := func(d time.Duration) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.latency = d
	}
	setLatency(2 * time.Second)
	return func() error { setLatency(h.plan.latency); return nil }, nil
}

// secondChief starts the chief's job once more, which must change nothing.
func (h *clusterHistory) secondChief(ctx context.Context, _ *rand.Rand) (undo, error) {
	chief := h.tasks[0]
	c, err := config.Load(h.configOf(0), nil)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	ready := h.highest >= 0
	h.mu.Unlock()
	_, locked := os.Lstat(filepath.Join(h.dir, logdir.LockFile)) // a logdir that was removed has none until the chief sees it
	if !chief.runs() || !ready || locked != nil {
		return nil, nil
	}
	if h.defect.unlocks() {
		os.Remove(filepath.Join(h.dir, logdir.LockFile))
	}
	err = daemon.Run(ctx, c, daemon.RunOptions{Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler), FS: readOnly{},
		Dial: h.cluster.network.dialer("second")})
	if code := daemon.ExitCode(err); code != daemon.ExitInUse && chief.runs() {
		return nil, broke("a second chief ends with exit code %d, want %d: %w", code, daemon.ExitInUse, err)
	}
	return nil, nil
}

// twoAtOnce has two things happen at the same time.
func (h *clusterHistory) twoAtOnce(ctx context.Context, rnd *rand.Rand) (undo, error) {
	single := []func(*clusterHistory, context.Context, *rand.Rand) (undo, error){
		(*clusterHistory).killServer, (*clusterHistory).freezeServer, (*clusterHistory).killTask, (*clusterHistory).cutOff,
		(*clusterHistory).breakConnections, (*clusterHistory).cutPower,
	}
	one := func(h *clusterHistory, ctx context.Context, rnd *rand.Rand) (undo, error) {
		return single[rnd.IntN(len(single))](h, ctx, rnd)
	}
	return inTurn(one, one)(h, ctx, rnd)
}
