package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/coord"
)

// socketEvery is the time between two looks at the control socket.
const socketEvery = 5 * time.Second

// failsLogged is how many looks must fail before the log has it: a run that cannot write its logdir,
// or whose logdir another run has, ends before the second, and says why.
const failsLogged = 2

// socketKeeper makes the control socket, and makes it again when it is gone: with a logdir
// that was deleted, or because another run had it that has ended.
type socketKeeper struct {
	listen func() (*control.Socket, error)
	answer func(net.Listener)
	log    *slog.Logger
	every  time.Duration

	now   *control.Socket // nil for none
	fails int             // looks that could not make it before the first
}

// keepSocket answers at the control socket until end is called.
func (s *service) keepSocket(log *slog.Logger, answer func(net.Listener)) (end func()) {
	if err := atomicfile.MkdirAllSync(nil, s.config.Logdir); err != nil && s.config.Supervisor.IsChief {
		return func() {} // the run ends because of that, and says so
	}
	k := &socketKeeper{listen: s.listenUnix, answer: answer, log: log, every: socketEvery}
	return k.start()
}

// start makes the socket and looks after it until end is called.
func (k *socketKeeper) start() (end func()) {
	k.look()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for coord.Sleep(ctx, k.every) {
			k.look()
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// look makes the socket unless it is in its place. Until there is another, the one before
// serves those who find it, as in a logdir that was moved.
func (k *socketKeeper) look() {
	if k.now != nil && k.now.Keep() {
		return
	}
	ln, err := k.listen()
	if err != nil {
		if k.fails++; k.now == nil && k.fails == failsLogged {
			k.log.Warn("no control socket; until there is one, the run can only be stopped by a signal", "err", err)
		}
		return
	}
	if k.now == nil && k.fails >= failsLogged {
		k.log.Info("the control socket is made", "socket", ln.Addr().String())
	}
	if k.now != nil {
		k.now.Close()
	}
	k.now = ln
	k.answer(ln)
}

func (s *service) listenUnix() (*control.Socket, error) {
	return control.ListenUnix(s.config.Logdir, firstFolder(os.Getenv("RUNTIME_DIRECTORY")), s.socketName())
}

// firstFolder returns the first of several folders separated by colons, which one's name may have
// as well: it is that of a unit.
func firstFolder(list string) string {
	if isDir, _ := isFolder(list); isDir {
		return list
	}
	first, _, _ := strings.Cut(list, ":")
	return first
}

func (s *service) socketName() string {
	switch c := s.config; {
	case c.Child.Nodes > 1 && c.Child.Node > 0:
		return control.WorkerSocketName(c.Child.Node)
	case !c.Supervisor.IsChief:
		return control.WorkerSocketName(c.Cluster.Task)
	}
	return control.SocketName
}
