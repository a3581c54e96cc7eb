package exec

import (
	"io"
	"log/slog"
)

// Printer is where ops print.
type Printer struct {
	Stdout, Stderr io.Writer    // nil discards
	Logger         *slog.Logger // never nil

	turn chan struct{} // of capacity 1: what is printed is written one at a time
}

func (o *Options) printer() *Printer {
	p := &Printer{Stdout: o.Stdout, Stderr: o.Stderr, Logger: o.Logger, turn: make(chan struct{}, 1)}
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	return p
}

// Printer returns where the session's ops print.
func (c *KernelContext) Printer() *Printer { return c.run.sess.printer }

// Print writes a text. Nothing fails because nobody reads what is printed.
func (p *Printer) Print(w io.Writer, text []byte) {
	if w == nil {
		return
	}
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	_, _ = w.Write(text)
}
