package child

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/glob"
	tfpb "github.com/trainerd/trainerd/proto"
)

// If only one part of a program reports, such as rank 0 under torchrun, that part may run on any
// node. So the workers pass the reports of their programs to the chief, in files in the folder of
// the nodes, until the chief has chosen which node's it takes.

// maxForwarded is the size at which a file of reports is continued in another one. The chief
// deletes the files that it has read.
const maxForwarded = 1 << 20

// reportsFile returns the name of a file with reports of a start from a node.
func (n *nodes) reportsFile(s start, node, part int) string {
	return filepath.Join(n.dir, fmt.Sprintf("node%d-%s.reports%d", node, s.rendezvous(), part))
}

// reportsFiles returns the names of a node's existing files with reports of a start, and the prefix
// of these names, before the number.
func (n *nodes) reportsFiles(s start, node int) (prefix string, names []string) {
	prefix = strings.TrimSuffix(n.reportsFile(s, node, 0), "0")
	names, _ = filepath.Glob(glob.Escape(prefix) + "*")
	return prefix, names
}

// firstPart returns the number of the first file of reports of a start from a node that
// the chief has not deleted yet.
func (n *nodes) firstPart(s start, node int) int {
	prefix, names := n.reportsFiles(s, node)
	first := 0
	for i, name := range names {
		if part, err := strconv.Atoi(strings.TrimPrefix(name, prefix)); err == nil && (i == 0 || part < first) {
			first = part
		}
	}
	return first
}

// dropReports deletes all files of reports.
func (n *nodes) dropReports() {
	if n == nil {
		return
	}
	names, _ := filepath.Glob(filepath.Join(glob.Escape(n.dir), "node*.reports*"))
	for _, name := range names {
		atomicfile.OrOS(n.disk).Remove(name) // one that stays says nothing about another start
	}
}

// syncReports makes the files of reports of a start durable, on whichever node they were written.
func (n *nodes) syncReports(s start) error {
	var errs []error
	for node := range n.count {
		_, names := n.reportsFiles(s, node)
		for _, name := range names {
			errs = append(errs, atomicfile.SyncFile(n.disk, name))
		}
	}
	return errors.Join(append(errs, atomicfile.OrOS(n.disk).SyncDir(n.dir))...)
}

// forwardedReport is a line of such a file.
type forwardedReport struct {
	Step   int64            `json:"step"`
	Time   time.Time        `json:"time"`
	Values []forwardedValue `json:"values,omitempty"`
}

type forwardedValue struct {
	Tag   string `json:"tag"`
	Value string `json:"value"` // JSON has neither NaN nor Inf
}

func encodeReport(r *Report, now time.Time) []byte {
	f := forwardedReport{Step: r.Step, Time: r.Time}
	if f.Time.IsZero() {
		f.Time = now
	}
	for _, v := range r.Values {
		f.Values = append(f.Values, forwardedValue{v.Tag, strconv.FormatFloat(v.Value, 'g', -1, 64)})
	}
	line, _ := json.Marshal(f) // texts, and a time that a report can have
	return line
}

// decodeReport returns nil for a line that is not a report.
func decodeReport(line []byte) *Report {
	var f forwardedReport
	if json.Unmarshal(line, &f) != nil {
		return nil
	}
	r := &Report{Step: f.Step, Time: f.Time}
	for _, v := range f.Values {
		value, err := strconv.ParseFloat(v.Value, 64)
		if err != nil {
			value = math.NaN()
		}
		r.Values = append(r.Values, Value{v.Tag, value})
	}
	return r
}

// forwarder writes the reports of one start on a worker.
type forwarder struct {
	part    int
	size    int    // of the current file
	waiting []byte // that could not be written yet
}

// add takes a report, which is lost if the disk has been full for long.
func (w *forwarder) add(r *Report) {
	if len(w.waiting) < maxForwarded {
		w.waiting = append(append(w.waiting, encodeReport(r, time.Now())...), '\n')
	}
}

// send appends what was added to a file of reports.
func (w *forwarder) send(n *nodes, s start) error {
	f, err := os.OpenFile(n.reportsFile(s, n.own, w.part), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	written, err := f.Write(w.waiting)
	if err = errors.Join(err, f.Close()); err != nil { // on NFS, other machines see after it what was written
		w.waiting = w.waiting[written:]
		return err
	}
	w.waiting = w.waiting[:0]
	if w.size += written; w.size >= maxForwarded {
		w.part, w.size = w.part+1, 0
	}
	return nil
}

// forwarded are the reports of one start that a node has passed on.
type forwarded struct {
	part    int
	offset  int64       // up to which it was read
	file    fs.FileInfo // that was read last, nil before the first
	reports []*Report   // not yet taken
	since   time.Time   // when the first ones were read
}

// read reads what has arrived since the last call.
func (f *forwarded) read(name func(part int) string) {
	for {
		_, err := os.Stat(name(f.part + 1))
		f.readPart(name(f.part))
		if err != nil {
			return // this one is still written to
		}
		os.Remove(name(f.part))
		f.part, f.offset = f.part+1, 0
	}
}

// restart begins reading a file that is not the one which was read last: that one was deleted,
// perhaps with the logdir, and the node has made it again.
func (f *forwarded) restart(file atomicfile.ReadFile) {
	info, err := file.Stat()
	if err != nil {
		return
	}
	if f.file != nil && (!os.SameFile(f.file, info) || info.Size() < f.offset) {
		f.offset = 0
	}
	f.file = info
}

// readPart reads the lines that are whole.
func (f *forwarded) readPart(name string) {
	file, err := atomicfile.Open(nil, name)
	if err != nil {
		return // the node has reported nothing
	}
	defer file.Close()
	f.restart(file)
	text, _ := io.ReadAll(io.NewSectionReader(file, f.offset, math.MaxInt64)) // the rest comes the next time
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	f.offset += int64(len(text))
	for line := range bytes.Lines(text) {
		if r := decodeReport(line); r != nil {
			f.reports = append(f.reports, r)
		}
	}
	if f.since.IsZero() && len(f.reports) > 0 {
		f.since = time.Now()
	}
}

// sourceChecks is for how many checks the reports of a node wait for the chief's own.
const sourceChecks = 10

// canBeSource reports whether a node has reported two steps, and some time ago. The ranks of a program
// make their steps together, so the chief's would have reported one of them by now.
func (f *forwarded) canBeSource(every time.Duration) bool {
	return len(f.reports) > 0 && f.reports[len(f.reports)-1].Step != f.reports[0].Step && time.Since(f.since) >= sourceChecks*every
}

// isReportSource reports whether a node's reports are used: those of the first node that reports numbers in
// a start.
func (r *run) isReportSource(node int) bool {
	if r.attempt.reportSource == nil {
		r.attempt.reportSource = &node
		r.publish(r.job.Phase, "")
	}
	return *r.attempt.reportSource == node
}

// onOwnReport handles a report of the program on this node.
func (r *run) onOwnReport(said queued) {
	if r.nodes == nil || len(said.report.Values) == 0 || r.isReportSource(r.nodes.own) {
		r.onReport(said.report, said.at)
	}
}

// takeForwarded handles what the program reports on another node, if it reports nothing here. last
// says that no more will come.
func (r *run) takeForwarded(last bool) {
	if r.nodes == nil || r.attempt.reportSource != nil && *r.attempt.reportSource == r.nodes.own {
		return
	}
	for node := range r.nodes.count {
		if node == r.nodes.own || r.attempt.reportSource != nil && *r.attempt.reportSource != node {
			continue
		}
		f := r.attempt.forwardedBy(node)
		f.read(func(part int) string { return r.nodes.reportsFile(r.job.start, node, part) })
		if r.attempt.reportSource == nil && !f.canBeSource(r.scanEvery()) && !(last && len(f.reports) > 0) {
			continue
		}
		first := r.attempt.reportSource == nil
		if first {
			r.log.Info("the program reports on another node, and nothing on this one; its curves are from there", "node", node)
			r.store.RecordReported(f.reached)
		}
		r.isReportSource(node)
		for _, report := range f.reports {
			r.onReport(report, time.Now())
		}
		f.reports = nil
		if first && r.attempt.nan == nil {
			r.rotate() // which has waited for them
		}
	}
}

// reached returns the highest step that had been passed on when a checkpoint was written.
func (f *forwarded) reached(written time.Time) (step int64) {
	for _, r := range f.reports {
		if !r.Time.After(written.Add(inFlight)) {
			step = max(step, r.Step)
		}
	}
	return step
}

// takeOver handles the reports that the nodes have passed on to an earlier chief. Those that the
// earlier chief has already handled are handled again.
func (r *run) takeOver(job jobState) {
	for node := range r.nodes.count {
		if job.Speaker != nil && *job.Speaker != node {
			continue
		}
		f := &forwarded{part: r.nodes.firstPart(job.start, node)}
		f.read(func(part int) string { return r.nodes.reportsFile(job.start, node, part) })
		if len(f.reports) == 0 {
			continue
		}
		first := f.reports[0].Step
		r.events.session(r.ectx, tfpb.SessionLog_START, "", first)
		r.events.Supersede(first)
		r.store.RecordReported(f.reached)
		for _, report := range f.reports {
			r.maxStep = max(r.maxStep, report.Step)
			r.events.report(r.ectx, report, time.Now())
			r.measure(report)
		}
		return
	}
}

// hasUntakenReports reports whether other nodes have passed on reports that may be used, once it is
// known whose are.
func (r *run) hasUntakenReports() bool {
	for _, f := range r.attempt.forwarded {
		if r.attempt.reportSource == nil && len(f.reports) > 0 {
			return true
		}
	}
	return false
}

// syncForwarded makes the reports that other nodes have passed on durable, if they are used, or may
// be. If this chief does not finish them, the next one takes all of them, so a power cut must not
// lose any that are in the events already.
func (r *run) syncForwarded() {
	switch source := r.attempt.reportSource; {
	case r.nodes == nil, source == nil && !r.hasUntakenReports(), source != nil && *source == r.nodes.own:
		return
	}
	if err := r.nodes.syncReports(r.job.start); err != nil {
		r.log.Warn("cannot make the reports of another node durable; a power cut may take their points", "err", err)
	}
}

func (a *attempt) forwardedBy(node int) *forwarded {
	if a.forwarded == nil {
		a.forwarded = map[int]*forwarded{}
	}
	if a.forwarded[node] == nil {
		a.forwarded[node] = &forwarded{}
	}
	return a.forwarded[node]
}
