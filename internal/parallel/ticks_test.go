package parallel

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAtEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		end := AtEach(time.Second, func() { calls++ })
		time.Sleep(3*time.Second + time.Millisecond)
		end()
		if calls != 3 {
			t.Errorf("%d calls in 3 s", calls)
		}
		time.Sleep(time.Minute)
		if calls != 3 {
			t.Errorf("%d calls after the end", calls)
		}
	})
}
