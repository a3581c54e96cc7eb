package daemon

import (
	"path/filepath"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// keepConfig writes the config into the logdir, for who looks at the run later.
// A training does not end because that fails.
func (j *job) keepConfig() {
	if !j.config.Supervisor.IsChief {
		return
	}
	text, err := j.config.Snapshot()
	if err == nil {
		err = atomicfile.WriteFile(j.fsys, filepath.Join(j.config.Logdir, config.SnapshotName), text)
	}
	if err != nil {
		j.log.Warn("the config could not be kept in the logdir", "err", err)
	}
}
