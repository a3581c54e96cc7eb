package daemon

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// Elsewhere returns the logdir of a run that the job seems to have had in another working
// directory, "" for none: a job that is started where its relative logdir is another folder, as by
// cron, begins from scratch.
func Elsewhere(c *config.Config) string {
	if !c.Supervisor.IsChief || hasRun(c.Logdir) {
		return ""
	}
	for _, dir := range c.OtherLogdirs() {
		if hasRun(dir) {
			return dir
		}
	}
	return ""
}

// hasRun reports whether a folder is the logdir of a run that is, or was.
func hasRun(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, logdir.LockFile))
	return err == nil && info.Mode().IsRegular()
}

// describeElsewhere says for a check what Elsewhere has found.
func describeElsewhere(c *config.Config) string {
	other := Elsewhere(c)
	if other == "" {
		return ""
	}
	return "; there is a run in " + other + ", but a relative logdir starts at the current folder: --logdir " + shell.Quote(other) + " continues that run"
}

// warnElsewhere says the same for a run, before it has its logdir.
func warnElsewhere(c *config.Config, log *slog.Logger) {
	if other := Elsewhere(c); other != "" {
		log.Warn("the logdir is new, but there is another run: a relative logdir starts at the current folder; --logdir continues the other run", "logdir", config.Absolute(c.Logdir), "run", other)
	}
}
