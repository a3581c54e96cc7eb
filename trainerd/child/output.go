package child

import (
	"io"
	"time"
)

// deadliner is an end of a pipe or connection.
type deadliner interface{ SetReadDeadline(time.Time) error }

// source is where a line comes from.
type source struct {
	out   io.Writer // of lines that are no reports; nil for nowhere
	parse bool      // it may have reports
}

// track registers a pipe or connection that drain must finish.
func (p *process) track(d deadliner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[d] = struct{}{}
	if !p.draining.IsZero() {
		d.SetReadDeadline(p.draining)
	}
}

func (p *process) untrack(d deadliner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, d)
}

// drain lets the readers take what has arrived, without waiting for more.
func (p *process) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = time.Now().Add(drainTime)
	for d := range p.conns {
		d.SetReadDeadline(p.draining) // one that is closed needs none
	}
	if p.listener != nil {
		p.listener.SetDeadline(time.Now())
	}
}

// read reads all lines of a stream: it sends reports to the owner, and passes other lines on.
func (p *process) read(r io.Reader, from source) {
	for lines := newLineReader(r); ; {
		line, k, err := lines.next()
		if err != nil {
			return
		}
		report, pure := p.parse(line, k, from.parse)
		if report != nil {
			p.reports <- queued{report, time.Now()}
		}
		if !pure && k != drawnOver {
			p.out.line(from.out, line)
		}
	}
}

func (p *process) parse(line []byte, k kind, parse bool) (r *Report, pure bool) {
	if k == pieceOfLine || k == shownLine {
		return nil, false
	}
	if parse {
		if r, pure = ParseReport(string(line)); pure { // else step=10 may be in a line of a log that is about something else
			p.hasReported.Store(true)
		}
		if pure || r != nil && len(r.Values) > 0 {
			return r, pure
		}
	}
	if found := p.understand(string(line)); found != nil {
		return found, false
	}
	return r, false
}

// understand returns the report in a line of the program's own format, or nil if there is none.
func (p *process) understand(line string) *Report {
	for _, pattern := range p.patterns {
		if r := matchPattern(pattern, line); r != nil {
			return r
		}
	}
	if len(p.patterns) > 0 || p.lines == nil || p.hasReported.Load() {
		return nil // the user, or the program, knows better
	}
	return p.lines.Read(line)
}

// output is where lines that are not reports go.
type output struct {
	turn           chan struct{} // has room for the one who writes
	stdout, stderr io.Writer     // nil for nowhere
}

func newOutput(stdout, stderr io.Writer) *output {
	return &output{make(chan struct{}, 1), stdout, stderr}
}

// line writes a whole line. A failure to show it is no reason to stop the training.
func (o *output) line(w io.Writer, line []byte) {
	if w == nil {
		return
	}
	text := append(line, '\n')
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	w.Write(text)
}
