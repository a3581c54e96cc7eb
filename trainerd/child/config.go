package child

import (
	"path/filepath"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// ConfigName is the file in a logdir with [Supervisor.Config]. The program may have
// its own config.toml there.
const ConfigName = "trainerd.config.toml"

// keepConfig writes the config into the logdir, for later readers of the run. The program is
// started even if that fails.
func (r *run) keepConfig() {
	if r.Config == nil {
		return
	}
	if err := atomicfile.WriteFile(r.FS, filepath.Join(r.logdir, ConfigName), r.Config); err != nil {
		r.log.Warn("the config could not be kept in the logdir", "err", err)
	}
}
