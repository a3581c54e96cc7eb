//go:build unix

package found

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestLastIsNeverGone lets each operation of replacing it fail in turn: a file of the name
// is there at each moment, nothing is left over, and the next try succeeds.
func TestLastIsNeverGone(t *testing.T) {
	for n := 0; ; n++ {
		dir := t.TempDir()
		last := filepath.Join(dir, "last.safetensors")
		childtest.Write(t, filepath.Join(dir, "s-10.safetensors"), childtest.TensorsOf(10))
		childtest.Write(t, last, childtest.TensorsOf(20)[:100])
		s := openStore(t, dir, "*.safetensors")
		s.Refresh(true)
		from, _ := s.Newest(math.MaxInt64)
		c, left := s.Lasts(from)[0], n
		whole := s.disk
		s.disk = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(string, string) bool {
			if _, err := os.Lstat(last); err != nil {
				t.Errorf("operation %d: %v", n-left, err)
			}
			left--
			return left == -1
		}}
		_, err := s.Replace(c, from, time.Now())
		if left >= 0 {
			if err != nil || n < 5 {
				t.Errorf("after %d operations: %v", n-left, err)
			}
			return
		}
		s.disk = whole
		if again := s.Lasts(from)[0]; again.Size != int64(len(childtest.TensorsOf(10))) {
			if _, err := s.Replace(again, from, time.Now()); err != nil {
				t.Errorf("operation %d has failed; the next try: %v", n, err)
			}
		}
		if got := childtest.Read(t, last); got != childtest.TensorsOf(10) {
			t.Errorf("operation %d has failed: then it has %d bytes", n, len(got))
		}
	}
}
