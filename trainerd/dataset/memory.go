package dataset

import (
	"fmt"

	"github.com/trainerd/trainerd/internal/machine"
)

// loadCopies is how often examples may be in memory while they are loaded: as they were
// read, as tensors have them, and twice in buffers that were too small.
const loadCopies = 4

// memoryLimit is what the examples of a table or of tf.Example messages may take.
type memoryLimit struct {
	option  int64 // Options.MemoryLimit
	machine int64 // the memory that there is
}

func (o Options) memoryLimit() memoryLimit {
	return memoryLimit{option: o.MemoryLimit, machine: machine.Memory()}
}

// exceeded says which limit so many bytes exceed, "" for none, and what to do.
func (l memoryLimit) exceeded(size int64) (reason, remedy string) {
	switch {
	case size > l.option:
		return fmt.Sprintf("take more than data.memory_mb = %d", l.option>>20), "raise data.memory_mb"
	case size > l.machine/loadCopies:
		return fmt.Sprintf("take more than %d MiB, a quarter of the memory of this machine or control group, and loading takes four times their size",
			l.machine/loadCopies>>20), "use fewer examples"
	}
	return "", ""
}
