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

// track notes an end that drain must bring to its end.
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

// drain lets the readers take what is there, and not wait for more.
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

// read takes all lines of a stream: reports go to the owner, others on.
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
			p.speaks.Store(true)
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

// understand reads a line that is no report, or one without numbers; nil for nothing.
func (p *process) understand(line string) *Report {
	for _, pattern := range p.patterns {
		if r := matchPattern(pattern, line); r != nil {
			return r
		}
	}
	if len(p.patterns) > 0 || p.lines == nil || p.speaks.Load() {
		return nil // the user, or the program, knows better
	}
	return p.lines.Read(line)
}

// output is where lines go that are no reports.
type output struct {
	turn           chan struct{} // has room for the one who writes
	stdout, stderr io.Writer     // nil for nowhere
}

func newOutput(stdout, stderr io.Writer) *output {
	return &output{make(chan struct{}, 1), stdout, stderr}
}

// line writes a whole line. One that cannot be shown is not a reason to stop
// training.
func (o *output) line(w io.Writer, line []byte) {
	if w == nil {
		return
	}
	text := append(line, '\n')
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	w.Write(text)
}
