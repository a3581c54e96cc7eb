package membound

import "testing"

// recorder is a test whose failure is of interest.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

var sink []byte

func TestCheck(t *testing.T) {
	for size, want := range map[int]bool{1 << 10: false, 2 * slack: true} {
		r := &recorder{TB: t}
		check := Check(r, 100, 10)
		sink = make([]byte, size)
		check()
		if r.failed != (want && counts) {
			t.Errorf("%d bytes allocated: failed is %v", size, r.failed)
		}
	}
}
