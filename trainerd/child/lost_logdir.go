package child

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// isLost reports, once, that the logdir has been lost.
func (r *run) isLost() bool {
	if r.lost != nil {
		return false
	}
	if r.lost = r.lock.Held(); r.lost == nil {
		r.remake()
	}
	return r.lost != nil
}

// remake makes again what was deleted with the lock file: the whole logdir, or what was
// in it.
func (r *run) remake() {
	times := r.lock.Relocked()
	if times == r.relocked || r.reopenLogdir() != nil {
		return
	}
	r.relocked, r.remade = times, time.Now()
	r.prompter.covered = found.NoStep // the program may be asked for what it had
	r.keepConfig()
	if r.nodes != nil {
		r.checkFolder(r.nodes.makeFolder())
		r.publish(r.job.Phase, "")
	}
	if !r.events.HasFile() {
		r.renewEvents()
	}
}

// renewEvents begins a new events file in place of the deleted ones.
func (r *run) renewEvents() {
	if r.events.Dir() != r.logdir {
		r.checkFolder(atomicfile.MkdirSync(r.disk, r.abs(ownRun)))
	}
	r.events.Renew() // what it had is gone, but what waits
	r.events.session(r.ectx, tfpb.SessionLog_START, "", max(r.attempt.step, 0)+1)
}

// reopenLogdir opens the logdir if it is another folder by now.
func (r *run) reopenLogdir() error {
	now, err := os.Stat(r.logdir)
	if err != nil {
		return err
	}
	if before, err := r.root.Stat("."); err == nil && os.SameFile(before, now) {
		return nil
	}
	root, err := os.OpenRoot(r.logdir)
	if err != nil {
		return err
	}
	r.endRefresh()
	r.root.Close()
	before := r.store
	r.useRoot(root)
	r.intact = nil        // which are gone
	r.store.Learn(before) // the program may have been between two files of a checkpoint
	r.suspect = nil
	return nil
}

// checkFolder logs an unexpected error in a logdir that was made again.
func (r *run) checkFolder(err error) {
	if err != nil {
		r.log.Error("a folder cannot be made again", "err", err)
	}
}

// leave ends the program, which writes under the logdir's name: at once if that name may belong to
// another run by now, otherwise with time to save.
func (r *run) leave() {
	if _, err := os.Stat(r.logdir); errors.Is(err, fs.ErrNotExist) {
		r.terminate()
		return
	}
	if r.attempt.ending == nil {
		r.attempt.ending = r.newEnding()
	}
	if r.attempt.ending.stage != killed {
		r.enter(killed)
	}
}
