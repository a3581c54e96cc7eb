//go:build unix

package child

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// smallDisk has only so many bytes left.
type smallDisk struct {
	atomicfile.FS
	free func() int64
}

// FreeSpace returns them.
func (d smallDisk) FreeSpace(string) (int64, error) { return d.free(), nil }

// TestFullDiskIsWaitedFor has a program that fails in each save while the disk is full, for
// hours: it trains on once there is room. One that fails for another reason does not, as one
// that fails before its first step with room for a checkpoint.
func TestFullDiskIsWaitedFor(t *testing.T) {
	const full = 6 * time.Hour
	size := int64(len(tensorsOf(20)))
	for _, left := range []int64{10, size + 1, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			begun, last := time.Now(), ""
			sv, log := simulate(t, func(p *simProgram) int {
				if last = p.variable("TRAINERD_CHECKPOINT"); time.Since(begun) < full {
					return 1
				}
				return 0
			})
			sv.Checkpoints = "ckpt-*.safetensors"
			for _, step := range []int{10, 20} {
				writeFile(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d.safetensors", step)), tensorsOf(step))
			}
			sv.FS = smallDisk{atomicfile.OrOS(nil), func() int64 { return left }}
			exit, err := sv.Run(t.Context())
			if waits := left < size; (err == nil) != waits || waits != (time.Since(begun) >= full) || waits && !strings.HasSuffix(last, "ckpt-20.safetensors") {
				t.Errorf("with %d bytes left: Run = %+v, %v after %v\n%s", left, exit, err, time.Since(begun), log)
			}
		})
	}
}
