package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/cmd/internal/garbage"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/systemd"
)

func serviceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "listen", Usage: "answer programs over HTTP at `ADDR`, as in 127.0.0.1:9090"},
		&cli.StringFlag{Name: "token-file", Usage: "ask for the token in `FILE` at --listen, which then need not be the loopback"},
		&cli.BoolFlag{Name: "pprof", Usage: "serve profiles of the process too"},
	}
}

// service is what a run has around it: the control server, and the service
// manager.
type service struct {
	config    *config.Config
	reread    func() (*config.Config, error)
	stderr    io.Writer
	monitor   *control.Monitor
	log       *control.Log
	server    *control.Server
	listener  net.Listener // of --listen, nil for none
	notifier  *systemd.Notifier
	journal   *systemd.JournalHandler // nil for none
	hangAfter time.Duration           // of the manager's watchdog, 0 for never
}

// newService opens what must not fail once the training has begun.
func newService(c *cli.Context, cfg *config.Config, stderr io.Writer, log *control.Log) (*service, error) {
	s := &service{config: cfg, stderr: stderr, log: log}
	if !c.Bool("pprof") {
		runtime.MemProfileRate = 0 // nobody asks for what is recorded, which takes a millisecond of a start
	}
	logdir, err := filepath.Abs(cfg.Logdir)
	if err != nil {
		return nil, err
	}
	name, changes := c.Args().First(), overrides(c)
	s.reread = func() (*config.Config, error) { return config.Load(name, changes) }
	if err := s.connect(); err != nil {
		return nil, err
	}
	s.monitor = control.NewMonitor(cfg.Name, logdir, os.Getpid())
	o := control.Options{HangAfter: s.hangAfter, Monitor: s.monitor, Log: s.log, Pprof: c.Bool("pprof"), Stopping: stopping(cfg), StopNow: s.stopNow}
	if o.Token, err = readToken(c.String("token-file")); err != nil {
		return nil, err
	}
	s.server = control.NewServer(o)
	if addr := c.String("listen"); addr != "" {
		if s.listener, err = control.ListenTCP(addr, o.Token); err != nil {
			return nil, cliargs.ListenError("--listen", err)
		}
	} else if o.Token != "" {
		return nil, usagef("--token-file is for --listen")
	}
	return s, nil
}

// connect finds systemd, if there is one.
func (s *service) connect() (err error) {
	if s.notifier, err = systemd.NewNotifier(os.Getenv); err != nil {
		return err
	}
	s.hangAfter = systemd.WatchdogInterval(os.Getenv, os.Getpid())
	if f, ok := terminal.Beneath(s.stderr).(*os.File); ok && systemd.IsJournal(f, os.Getenv) {
		// Where its socket cannot be seen, as in a root of its own, the journal takes lines of text.
		s.journal, _ = systemd.NewJournalHandler(systemd.JournalOptions{Prefix: "TRAINERD_", Identifier: "trainerd"})
	}
	return nil
}

func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	const least = 16
	token := strings.TrimSpace(string(text))
	if len(token) < least {
		return "", usagef("--token-file: %s has a token of %d characters, want %d or more", name, len(token), least)
	}
	return token, nil
}

// stopNow ends the process when the answer is on its way.
func (s *service) stopNow() {
	const underway = 100 * time.Millisecond
	time.AfterFunc(underway, func() { os.Exit(daemon.ExitInterrupted) })
	fmt.Fprintln(s.stderr, "ending at once on request; what came after the last checkpoint is lost")
}

// run trains. A job that is complete leaves nothing of the runs before.
func (s *service) run(ctx context.Context, o daemon.RunOptions) (err error) {
	defer func() {
		if err == nil {
			control.RemoveDead(s.config.Logdir, s.socketName())
		}
	}()
	if !s.config.IsChild() { // else it is done where the program is known
		defer system.KeepReaping()()
	}
	garbage.CollectLate()
	defer s.notifier.Close()
	o.Monitor, o.Serve, o.Also = s.monitor, s.serve, s.log.Handler()
	if s.journal != nil {
		defer s.journal.Close()
		o.Log = slog.New(s.journal)
	}
	if s.notifier == nil {
		return daemon.Run(ctx, s.config, o)
	}
	o.Again = ""                                                      // the manager has its own words for that
	telling, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a stop is reported too
	told := make(chan struct{})
	go func() {
		defer close(told)
		tell := systemd.Service{State: s.state, Notify: s.notifier.Notify, Watchdog: s.hangAfter, Wake: s.monitor.Wake()}
		tell.Serve(telling)
	}()
	defer func() {
		cancel()
		<-told
	}()
	return daemon.Run(ctx, s.config, o)
}

// state is the status that systemd shows.
func (s *service) state() systemd.State {
	st := s.monitor.Status()
	return systemd.State{
		Ready:    s.monitor.Ready(),
		Stopping: st.Phase == control.Stopping || st.Phase == control.Ended,
		Busy:     st.Phase.Busy(),
		Progress: s.monitor.Progress(),
		Text:     st.Text(),
	}
}

// serve answers until the end of the run. A socket that cannot be made is no
// reason not to train.
func (s *service) serve(log *slog.Logger) (end func()) {
	var serving sync.WaitGroup
	answer := func(ln net.Listener) {
		serving.Go(func() {
			if err := s.server.Serve(ln); err != nil && !errors.Is(err, net.ErrClosed) {
				log.Warn("control server has ended", "err", err)
			}
		})
	}
	if s.listener != nil {
		log.Info("answering over HTTP", "addr", s.listener.Addr().String())
		answer(s.listener)
	}
	endSocket := s.keepSocket(log, answer)
	endReloads := func() {}
	if s.notifier != nil {
		endReloads = s.reloadOnHangup(log)
	}
	return func() {
		endReloads()
		endSocket()
		const patience = 5 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			log.Warn("control server could not be closed", "err", err)
		}
		serving.Wait()
	}
}

// reloadOnHangup reads the config again at each SIGHUP, until end is called.
func (s *service) reloadOnHangup(log *slog.Logger) (end func()) {
	before := s.config.Settings()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	stop, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-hangups:
				s.notifier.Notify(systemd.Reloading()...)
				before = s.reload(ctx, log, before)
				s.notifier.Notify(systemd.Ready)
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(stop)
		cancel()
		<-ended
	}
}

// reload applies the settings that have changed in the config, and
// returns those that the config has.
func (s *service) reload(ctx context.Context, log *slog.Logger, before []config.Setting) []config.Setting {
	config, err := s.reread()
	if err != nil {
		log.Error("config is invalid; the run keeps the previous one", "err", err)
		return before
	}
	job, err := s.monitor.Job()
	if err != nil {
		log.Warn("config is not reloaded", "err", err)
		return before
	}
	after := config.Settings()
	var keys []string
	for _, setting := range after {
		keys = append(keys, setting.Key)
		if slices.Contains(before, setting) {
			continue
		}
		if _, err := job.Set(ctx, setting.Key, setting.Value); err != nil {
			log.Error("setting is not reloaded", "key", setting.Key, "err", err)
		}
	}
	log.Info("config is reloaded; other keys than these need a restart", "keys", strings.Join(keys, ", "))
	return after
}
