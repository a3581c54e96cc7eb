package parallel

import (
	"runtime"
	"time"
)

// turn is how long work in the background continues before it yields. Go by
// itself would let it continue for 10 ms while another goroutine waits for the
// processor; Linux looks every 4 ms. What gets the processor then keeps it
// as long, so with short turns the work would hardly come to an end where
// others want all processors all the time.
const turn = 4 * time.Millisecond

// Turns lets work in the background take turns with everything else that is ready
// its processor. The zero value is ready; each goroutine needs its own.
type Turns struct{ began time.Time }

// GiveWay lets others have the processor if the work has gone on for some
// milliseconds. The work calls it every few hundred microseconds.
func (t *Turns) GiveWay() {
	now := time.Now()
	if t.began.IsZero() {
		t.began = now
	}
	if now.Sub(t.began) < turn {
		return
	}
	runtime.Gosched()
	yieldThread()
	t.began = time.Now()
}
