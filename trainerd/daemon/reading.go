package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// readingEvery is how often a run says that it still reads its data: a million images
// take minutes.
const readingEvery = 20 * time.Second

// readJob makes the job, for which it reads the data. It returns nil and no error when
// it was stopped before it had them.
func (o RunOptions) readJob(ctx context.Context, c *config.Config) (*job, error) {
	defer o.sayReading(c)()
	j, err := newJob(ctx, c)
	if err != nil && ctx.Err() != nil {
		o.sayUnread(c.Data.File)
		return nil, nil
	}
	return j, err
}

// sayReading says every so often that the data are being read, until end is called.
func (o RunOptions) sayReading(c *config.Config) (end func()) {
	begun := time.Now()
	return parallel.AtEach(readingEvery, func() { o.sayStillReading(c.Data.File, time.Since(begun).Round(time.Second)) })
}

func (o RunOptions) sayStillReading(file string, took time.Duration) {
	if o.Log == nil && o.Terminal {
		fmt.Fprintf(o.Stderr, "still reading %s after %v\n", file, took)
		return
	}
	o.firstLog().Info("still reading the data", "file", file, "took", took)
}

// sayUnread says that the run was stopped before it had its data.
func (o RunOptions) sayUnread(file string) {
	if o.Log == nil && o.Terminal {
		fmt.Fprintf(o.Stderr, "stopped while reading %s; nothing was changed\n", file)
		return
	}
	o.firstLog().Info("stopped while reading the data; nothing was changed", "file", file)
}

// firstLog returns the log of what comes before the training.
func (o RunOptions) firstLog() *slog.Logger {
	h := slog.Handler(slog.NewTextHandler(o.Stderr, nil))
	if o.Log != nil {
		h = o.Log.Handler()
	}
	return o.log(h)
}
