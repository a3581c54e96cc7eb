package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

// checkpointJSON is an element of `ckpt ls DIR --json`.
type checkpointJSON struct {
	Prefix string    `json:"prefix"`
	Step   *int64    `json:"step"` // null when the name has none
	Time   time.Time `json:"time"`
	Bytes  int64     `json:"bytes"`
	Latest bool      `json:"latest"` // the state file names it

	// Of one that another program has written under trainerd.
	Format   string     `json:"format,omitempty"`
	Verified *time.Time `json:"verified,omitempty"`
	Problem  string     `json:"problem,omitempty"` // why it is not what was verified

	Metrics  map[string]manifest.Metric `json:"metrics,omitempty"` // of the model in it
	Sources  map[string]string          `json:"sources,omitempty"` // who measured them
	Why      []string                   `json:"why"`               // it stays
	GoesNext bool                       `json:"goes_next"`         // the next save removes it
}

// listed is a checkpoint of a directory.
type listed struct {
	ckptdir.Checkpoint
	dir     string
	record  *manifest.Record // of another program's, else nil
	problem error

	metrics map[string]float64 // of the model in it
	sources map[string]string
	why     []string
	goes    bool // with the next save
}

// shownMetrics are the metrics by which people compare models: those of
// evaluations or of the program, and only without them those of training batches.
func (l *listed) shownMetrics() string {
	measured := func(name string) bool { return l.sources[name] != manifest.SourceTrain }
	names := slices.Sorted(maps.Keys(l.metrics))
	compared := slices.ContainsFunc(names, measured)
	var all []string
	for _, name := range names {
		if name == "learning_rate" || strings.HasPrefix(name, "global_step/") || compared && !measured(name) {
			continue // of the steps, not of the model
		}
		all = append(all, fmt.Sprintf("%s %.4g", name, l.metrics[name]))
	}
	return strings.Join(all, " ")
}

// whyText says why a checkpoint stays, and whether it will.
func (l *listed) whyText() string {
	why := l.why
	if l.goes {
		why = append(slices.Clone(why), "goes next")
	}
	return strings.Join(why, ", ")
}

// verifiedText says when a checkpoint was verified.
func (l *listed) verifiedText(layout string, zone *time.Location) string {
	switch {
	case l.record == nil:
		return ""
	case l.problem != nil:
		return "changed"
	}
	return l.record.Verified.In(zone).Format(layout)
}

func (l *listed) format() string {
	if l.record == nil {
		return ""
	}
	return l.record.Format
}

// hasRecords reports whether a directory is the logdir of another program with
// verified checkpoints.
func hasRecords(dir string) bool {
	all, _ := manifest.Records(dir)
	return len(all) > 0
}

// listCheckpoints returns the checkpoints of TensorFlow in a directory, and those
// that trainerd has verified there.
func listCheckpoints(dir string) (all []listed, err error) {
	own, err := ckptdir.List(dir)
	if err != nil {
		return nil, err
	}
	for _, c := range own {
		all = append(all, listed{Checkpoint: c, dir: dir})
	}
	records, bad := manifest.Records(dir)
	if len(records) == 0 {
		return all, errors.Join(bad...)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, r := range records {
		files, err := integrity.Files(root, r.Parts)
		if errors.Is(err, fs.ErrNotExist) && len(files) == 0 {
			continue // it was deleted since
		}
		if err == nil {
			err = r.Compare(root, files)
		}
		prefix := filepath.Join(dir, filepath.FromSlash(r.Name))
		if i := slices.IndexFunc(all, func(l listed) bool { return filepath.Clean(l.Prefix) == prefix }); i >= 0 {
			all[i].record, all[i].problem = r, err
			continue
		}
		c := ckptdir.Checkpoint{Prefix: prefix, Step: r.Step, Time: r.WallTime.Local(), Bytes: r.Bytes()}
		all = append(all, listed{Checkpoint: c, dir: dir, record: r, problem: err})
	}
	slices.SortStableFunc(all, func(a, b listed) int { return cmp.Compare(a.Step, b.Step) })
	markNewest(all)
	return all, errors.Join(bad...)
}

// markNewest marks the newest verified checkpoint of another program, with which that
// is started again, unless a file `checkpoint` of its own names one.
func markNewest(list []listed) {
	if slices.ContainsFunc(list, func(l listed) bool { return l.Latest }) {
		return
	}
	for i := range slices.Backward(list) {
		if list[i].record != nil && list[i].problem == nil {
			list[i].Latest = true
			return
		}
	}
}

func lsCheckpoints(c *cli.Context, dir string) error {
	list, unread := listBelow(dir)
	if unread != nil && list == nil {
		return unread
	}
	if unread != nil {
		fmt.Fprintf(c.App.ErrWriter, "ckpt: %v\n", unread)
	}
	var err error
	switch {
	case c.Bool("json"):
		out := make([]checkpointJSON, len(list))
		for i := range list {
			out[i] = list[i].json()
		}
		err = printList(c.App.Writer, out)
	case c.Bool("csv"):
		err = printCSV(c.App.Writer, checkpointRows(list))
	default:
		err = printCheckpoints(c.App.Writer, list)
	}
	if err != nil {
		return err
	}
	if ckptdir.IsUnreadable(unread) {
		return exitError(exitFailed) // there may be more
	}
	if len(list) == 0 {
		printNone(c.App.ErrWriter, dir)
		return exitError(exitNothing)
	}
	// Another program's need no state file.
	if slices.ContainsFunc(list, func(l listed) bool { return l.dir == dir && l.record == nil }) {
		return checkState(c.App.ErrWriter, dir)
	}
	return nil
}

func (l *listed) json() checkpointJSON {
	x := checkpointJSON{Prefix: l.Prefix, Time: l.Time.UTC(), Bytes: l.Bytes, Latest: l.Latest, Format: l.format()}
	if l.Step >= 0 {
		x.Step = &l.Step
	}
	if l.record != nil {
		x.Verified = &l.record.Verified
	}
	if l.problem != nil {
		x.Problem = l.problem.Error()
	}
	for name, v := range l.metrics {
		if x.Metrics == nil {
			x.Metrics = make(map[string]manifest.Metric)
		}
		x.Metrics[name] = manifest.Metric(v)
	}
	x.Sources, x.Why, x.GoesNext = l.sources, append([]string{}, l.why...), l.goes
	return x
}

// checkpointRows is the list as comma-separated values. Where another program's are
// in it, each row has two more.
func checkpointRows(list []listed) [][]string {
	foreign := slices.ContainsFunc(list, func(l listed) bool { return l.record != nil })
	header := []string{"prefix", "step", "time", "bytes", "latest"}
	if foreign {
		header = append(header, "format", "verified")
	}
	header = append(header, "metrics", "why")
	rows := [][]string{header}
	for _, l := range list {
		row := []string{l.Prefix, stepText(l.Checkpoint, ""), l.Time.UTC().Format(time.RFC3339Nano), strconv.FormatInt(l.Bytes, 10), strconv.FormatBool(l.Latest)}
		if foreign {
			row = append(row, l.format(), l.verifiedText(time.RFC3339Nano, time.UTC))
		}
		row = append(row, l.shownMetrics(), l.whyText())
		rows = append(rows, row)
	}
	return rows
}

func printCheckpoints(w io.Writer, list []listed) error {
	if len(list) == 0 {
		return nil
	}
	foreign := slices.ContainsFunc(list, func(l listed) bool { return l.record != nil })
	header := []string{"STEP", "TIME", "SIZE"}
	if foreign {
		header = append(header, "FORMAT", "VERIFIED")
	}
	measured := slices.ContainsFunc(list, func(l listed) bool { return l.shownMetrics() != "" })
	if measured {
		header = append(header, "METRICS")
	}
	t := terminal.NewTable(append(header, "PREFIX", "WHY")...)
	for _, l := range list {
		row := []string{stepText(l.Checkpoint, "-"), l.Time.Format(time.DateTime), terminal.Size(l.Bytes)}
		if foreign {
			row = append(row, cmp.Or(l.format(), "-"), cmp.Or(l.verifiedText(time.DateTime, time.Local), "-"))
		}
		if measured {
			row = append(row, cmp.Or(l.shownMetrics(), "-"))
		}
		t.Add(append(row, printable(l.Prefix), l.whyText())...)
	}
	return t.Print(w, terminal.StyleFor(w))
}

// stepText is a checkpoint's step, or "-" for none.
func stepText(ck ckptdir.Checkpoint, none string) string {
	if ck.Step < 0 {
		return none
	}
	return strconv.FormatInt(ck.Step, 10)
}
