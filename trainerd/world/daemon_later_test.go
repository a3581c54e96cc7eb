//go:build unix

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/session"
)

// laterDaemonEvents came after daemonEvents. What a seed meant before stays known: see
// firstDaemonPlan.
var laterDaemonEvents = []*event{
	{name: "rate", ask: (*daemonLife).askRate},
	{name: "disk-error-at-stop", ask: (*daemonLife).stopOnBadDisk},
	{name: "logdir-removed", ask: (*daemonLife).removeLogdir},
}

// askRate sets a learning rate that is in a variable to another value and back, in a
// pause. Each is new in a checkpoint of the same step.
func (l *daemonLife) askRate(context.Context) error {
	if l.plan.kind != rateKind || l.keys["supervisor.write_version"] != "" {
		return nil
	}
	if status, _ := l.request(http.MethodPost, "v1/pause", ""); status != http.StatusOK {
		return nil
	}
	for _, rate := range []float32{firstRate / 2, firstRate} {
		if err := l.saveRate(rate); err != nil {
			return err
		}
	}
	return l.post("resume", "")
}

// saveRate sets the learning rate, and wants a save to have it.
func (l *daemonLife) saveRate(rate float32) error {
	if status, _ := l.request(http.MethodPost, "v1/set", fmt.Sprintf(`{"key": "learning_rate", "value": "%v"}`, rate)); status != http.StatusOK {
		return nil
	}
	status, answer := l.request(http.MethodPost, "v1/save", "")
	var saved control.Saved
	if status != http.StatusOK {
		return nil
	}
	if err := json.Unmarshal(answer, &saved); err != nil {
		return broke("save is answered by %s", answer)
	}
	b, err := ckptfmt.OpenBundle(saved.Checkpoint, nil)
	if err != nil {
		return broke("%s was announced: %w", saved.Checkpoint, err)
	}
	defer b.Close()
	v, err := b.Lookup(rateVariable)
	if err != nil {
		return broke("%s was announced: %w", saved.Checkpoint, err)
	}
	if got, err := ckptfmt.Values[float32](v); err != nil || got[0] != rate {
		return broke("the learning rate was set to %v and saved, and %s has %v, %v", rate, saved.Checkpoint, got, err)
	}
	return nil
}

// stopOnBadDisk stops the run while an operation of its disk is about to fail. The last
// save is tried again, so nothing is lost.
func (l *daemonLife) stopOnBadDisk(ctx context.Context) error {
	l.mu.Lock()
	l.lossy = true
	l.mu.Unlock()
	l.fs.Break(1+l.rnd.IntN(30), faultfs.Fault{Err: []error{syscall.EIO, syscall.ENOSPC}[l.rnd.IntN(2)]})
	return l.sendSignal(ctx)
}

// removeLogdir removes the logdir with all that is in it. The run makes it again, and
// continues with checkpoints and events as if it had just begun.
func (l *daemonLife) removeLogdir(context.Context) error {
	l.mu.Lock()
	l.homeless, l.announced = true, session.NoStep
	l.mu.Unlock()
	l.fs.Mark(0)
	for {
		err := removeDir(l.fs, l.dir)
		switch {
		case errors.Is(err, faultfs.ErrKilled):
			return nil
		case err == nil, l.fs.Failed() == "":
			return err
		}
		select { // the disk fails for somebody who removes, too
		case <-time.After(time.Second):
		case <-l.ended:
			l.fs.Heal()
		}
	}
}

// removeDir removes a folder that a run writes to.
func removeDir(fsys *faultfs.FS, dir string) error {
	for {
		err := removeBelow(fsys, dir)
		if err == nil {
			err = fsys.Remove(dir)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
		time.Sleep(time.Millisecond) // the run has written something meanwhile
	}
}

// removeBelow removes what is in a folder.
func removeBelow(fsys *faultfs.FS, dir string) error {
	var names []string
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if name != dir && err == nil {
			names = append(names, name)
		}
		return nil
	})
	for _, name := range slices.Backward(names) {
		if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// replaceLogdir makes an empty logdir where one was removed in the moment in which the
// run ended. The next life begins in it.
func (l *daemonLife) replaceLogdir() error {
	if !l.isHomeless() {
		return nil
	}
	err := os.Mkdir(l.dir, 0o777)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		l.from = 0
	}
	return err
}

// settleDown notes that the run has made its logdir again. The points from there on
// are there.
func (l *daemonLife) settleDown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.homeless = false
	l.from = l.step + 2 // steps that are being made, and written about
}
