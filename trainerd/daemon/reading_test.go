package daemon

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestSayReading reads data for a minute: nobody has to guess what the run does, on a
// terminal, in a log, or in that of a program.
func TestSayReading(t *testing.T) {
	c := &config.Config{}
	c.Data.File = "photos"
	for name, set := range map[string]func(o *RunOptions, out io.Writer){
		"terminal": func(o *RunOptions, out io.Writer) { o.Stderr, o.Terminal = out, true },
		"log":      func(o *RunOptions, out io.Writer) { o.Stderr = out },
		"given": func(o *RunOptions, out io.Writer) {
			o.Log, o.Stderr = slog.New(slog.NewTextHandler(out, nil)), io.Discard
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var o RunOptions
			out := new(strings.Builder)
			set(&o, out)
			end := o.sayReading(c)
			time.Sleep(time.Minute - 1)
			end()
			time.Sleep(time.Minute)
			if got := out.String(); strings.Count(got, "photos") != 2 || !strings.Contains(got, "40s") {
				t.Errorf("%s: said\n%s", name, got)
			}
		})
	}
}
