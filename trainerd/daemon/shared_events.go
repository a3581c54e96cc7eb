package daemon

import (
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
)

// sharedEvents says that the graph's summary writers write into the logdir, where the run has its
// own events file: TensorBoard follows only one growing file per folder. It returns "" if they do
// not.
func sharedEvents(p *program.Program, c *config.Config) string {
	for _, dir := range p.EventFolders() {
		if isSameFolder(dir, c.Logdir) {
			return "the graph's summary writers write into the logdir, which has the events of the run: TensorBoard shows " +
				"only a part of both; export the graph with another folder, such as " + filepath.Join(c.Logdir, "graph")
		}
	}
	return ""
}

// isSameFolder reports whether two paths lead to one folder, which need not be there yet.
func isSameFolder(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return config.Absolute(a) == config.Absolute(b)
}
