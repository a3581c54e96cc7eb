package child

import (
	"os"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// reaps reports whether this process inherits orphans: as the first process of a container it has
// to wait for them, or the process table fills up.
var reaps = os.Getpid() == 1

func (r *run) reapOrphans() {
	if !reaps {
		return
	}
	program := 0
	if r.attempt.process != nil {
		program = r.attempt.process.program.PID()
	}
	system.ReapOrphans(program)
}
