package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// keptConfig is the file in a logdir with the config of its newest run.
const keptConfig = "config.toml"

// keepConfig writes the config into the logdir, for anyone who looks at the run later.
// A training does not end because that fails.
func (j *job) keepConfig() {
	if !j.config.Supervisor.IsChief {
		return
	}
	text, err := j.config.Snapshot()
	if err == nil {
		err = atomicfile.WriteFile(j.fsys, filepath.Join(j.config.Logdir, keptConfig), text)
	}
	if err != nil {
		j.log.Warn("the config could not be kept in the logdir", "err", err)
	}
}

// keepAgain writes the files that a run keeps in its logdir besides checkpoints and events, if they
// were deleted: at once, because workers that have no session yet wait for the run's ID, and the
// next save may wait for them.
func (j *job) keepAgain() {
	if _, err := os.Stat(filepath.Join(j.config.Logdir, keptConfig)); errors.Is(err, fs.ErrNotExist) {
		j.keepConfig()
	}
	if err := j.task.KeepRunID(); err != nil {
		j.log.Warn("the ID of the run could not be kept in the logdir; other processes of the job will not find its model", "err", err)
	}
}

// programConfig returns the config of a program's job as its logdir keeps it, or nil if it cannot
// be encoded. It leaves out the environment, because people put secrets there.
func programConfig(c *config.Config, log *slog.Logger) []byte {
	kept := *c
	kept.Child.Env = nil
	text, err := kept.Snapshot()
	if err != nil {
		log.Warn("the config could not be kept in the logdir", "err", err)
		return nil
	}
	if len(c.Child.Env) > 0 {
		text = append([]byte("# child.env is left out.\n"), text...)
	}
	return text
}
