package parallel

import "time"

// AtEach calls f after each pause, until end is called, which waits for a call that is under way.
func AtEach(pause time.Duration, f func()) (end func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				f()
			}
		}
	}()
	return func() { close(quit); <-ended }
}
