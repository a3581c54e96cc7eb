//go:build !unix

package measure

import "time"

// CPUTime returns 0: these systems do not tell.
func CPUTime() time.Duration { return 0 }
