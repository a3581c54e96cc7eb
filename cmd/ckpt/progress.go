package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

// progressKey is where the app's metadata holds the bar of long work.
const progressKey = "progress"

// progressOf returns the bar, nil where nobody watches.
func progressOf(c *cli.Context) *terminal.Progress {
	p, _ := c.App.Metadata[progressKey].(*terminal.Progress)
	return p
}

// watch returns r with what it reads shown; all of it is expected to be
// read once. Reading of tensors ends when the command is interrupted.
func watch(c *cli.Context, r ckptfmt.Reader) ckptfmt.Reader {
	p := progressOf(c)
	p.Expect(sizeOf(r))
	return &watched{r, c.Context, p}
}

type watched struct {
	ckptfmt.Reader
	ctx      context.Context
	progress *terminal.Progress
}

func (w *watched) OpenTensor(name string) (*ckptfmt.TensorReader, error) {
	t, err := w.Reader.OpenTensor(name)
	if err != nil {
		return nil, err
	}
	t.Watch = func(n int) error {
		w.progress.Add(n)
		return w.ctx.Err()
	}
	return t, nil
}

// sizeOf returns the bytes of all tensors. What cannot be read is reported when it
// is needed.
func sizeOf(r ckptfmt.Reader) (size int64) {
	for info, err := range r.Tensors() {
		if err == nil {
			size += info.Bytes
		}
	}
	return size
}
