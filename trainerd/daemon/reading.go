package daemon

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// readingEvery is how often a run says that it still reads its data: a million images
// take minutes.
const readingEvery = 20 * time.Second

// sayReading says every so often that the data are being read, until end is called.
func (o RunOptions) sayReading(c *config.Config) (end func()) {
	begun := time.Now()
	return atEach(readingEvery, func() { o.sayStillReading(c.Data.File, time.Since(begun).Round(time.Second)) })
}

func (o RunOptions) sayStillReading(file string, took time.Duration) {
	if o.Log == nil && o.Terminal {
		fmt.Fprintf(o.Stderr, "still reading %s after %v\n", file, took)
		return
	}
	h := slog.Handler(slog.NewTextHandler(o.Stderr, nil))
	if o.Log != nil {
		h = o.Log.Handler()
	}
	o.log(h).Info("still reading the data", "file", file, "took", took)
}
