package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// bestCheckpoints keeps the checkpoints with the best values of a metric, in a
// folder of their own, where no rotation removes them. A nil one keeps none.
type bestCheckpoints struct {
	dir    string
	fsys   ckptfmt.FS
	base   string
	metric string
	less   bool // less is better
	keep   int
	saver  *checkpoint.Saver
	kept   []bestCheckpoint // the best first
}

// bestCheckpoint is an entry of logdir.BestFile.
type bestCheckpoint struct {
	Step  int64           `json:"step"`
	Value manifest.Metric `json:"value"`
	Name  string          `json:"checkpoint"`
}

// bestRecord is what logdir.BestFile has.
type bestRecord struct {
	Version     int              `json:"version"`
	Metric      string           `json:"metric"`
	Mode        string           `json:"mode"`
	Checkpoints []bestCheckpoint `json:"checkpoints"`
}

// newBestCheckpoints returns what eval.keep_best asks for, nil for none.
func newBestCheckpoints(j *job) *bestCheckpoints {
	e := j.config.Eval
	if e.KeepBest == 0 {
		return nil
	}
	b := &bestCheckpoints{dir: filepath.Join(j.config.Logdir, logdir.BestDir), fsys: j.fsys, base: j.config.Supervisor.CheckpointBasename, keep: e.KeepBest}
	b.metric, b.less = j.choosingMetric()
	b.saver = &checkpoint.Saver{MaxToKeep: -1, MetaGraph: j.program.Meta, FS: j.fsys, Logger: slog.New(slog.DiscardHandler)}
	return b
}

// lessIsBetter reports what a mode means for a metric; "" leaves it to the name.
func lessIsBetter(mode, metric string) bool {
	return mode == "min" || mode == "" && (strings.HasSuffix(metric, "loss") || strings.HasSuffix(metric, "error"))
}

// choosingMetric returns the metric by which evaluations are compared, and
// whether less of it is better.
func (j *job) choosingMetric() (metric string, less bool) {
	e := j.config.Eval
	if metric = e.Metric; metric == "" {
		metric = j.program.Metrics[0].Name
	}
	return metric, lessIsBetter(e.Mode, metric)
}

func (b *bestCheckpoints) mode() string { return modeName(b.less) }

func modeName(less bool) string {
	if less {
		return "min"
	}
	return "max"
}

// begin reads what earlier runs have kept. It forgets the steps that will be made again, because
// they will be evaluated again.
func (b *bestCheckpoints) begin(step int64) error {
	if b == nil {
		return nil
	}
	b.kept = nil // a session that was lost had learned them, too
	b.sweep()
	kept, err := b.read()
	if err != nil {
		return err
	}
	for _, c := range kept {
		if _, err := ckptdir.Find(filepath.Join(b.dir, filepath.Base(c.Name))); err == nil && c.Step < step {
			b.kept = append(b.kept, c)
		}
	}
	return nil
}

// read returns what logdir.BestFile has. A nil b has none.
func (b *bestCheckpoints) read() ([]bestCheckpoint, error) {
	if b == nil {
		return nil, nil
	}
	name := filepath.Join(b.dir, logdir.BestFile)
	text, err := atomicfile.ReadFileLimit(nil, name, maxRecord, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r bestRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, &recordError{name, err, "the best checkpoints will be chosen again"}
	}
	if err := checkVersion(name, r.Version); err != nil {
		return nil, err
	}
	if r.Metric != b.metric || r.Mode != b.mode() {
		return nil, &chosenError{name, r.Mode + " of " + r.Metric, b.mode() + " of " + b.metric, b.dir}
	}
	return r.Checkpoints, nil
}

// chosenError says that the config now chooses the best checkpoints in another way.
type chosenError struct{ file, was, is, dir string }

func (e *chosenError) Error() string {
	return fmt.Sprintf("%s: the best checkpoints were chosen by the %s, but the config says the %s; move %s away to choose again",
		e.file, e.was, e.is, e.dir)
}

// sweep removes what a killed run has left of an unfinished checkpoint. Files that cannot be
// removed only take up space.
func (b *bestCheckpoints) sweep() {
	if notALink(b.dir) == nil {
		_, _ = ckptdir.SweepTemps(b.dir, 0, &ckptfmt.FileOptions{FS: b.fsys})
	}
}

// better reports whether x comes before y. Of equal values the earlier is
// better: it has trained less for the same.
func (b *bestCheckpoints) better(x, y bestCheckpoint) int {
	order := cmp.Compare(y.Value, x.Value)
	if b.less {
		order = -order
	}
	return cmp.Or(order, cmp.Compare(x.Step, y.Step))
}

// offer keeps the model if it is among the best.
func (b *bestCheckpoints) offer(ctx context.Context, sess session.Session, step int64, e *evaluation) error {
	if b == nil {
		return nil
	}
	value, ok := e.value(b.metric)
	if !ok || math.IsNaN(value) {
		return nil
	}
	c := bestCheckpoint{Step: step, Value: manifest.Metric(value), Name: fmt.Sprintf("%s-%d", b.base, step)}
	b.kept = slices.DeleteFunc(b.kept, b.isGone)
	if len(b.kept) >= b.keep && b.better(c, b.kept[b.keep-1]) > 0 {
		return nil
	}
	if err := errors.Join(notALink(b.dir), atomicfile.MkdirSync(b.fsys, b.dir)); err != nil {
		return err
	}
	if err := b.save(ctx, sess, step, e); err != nil {
		return fmt.Errorf("saving the best checkpoint: %w", err)
	}
	b.kept = append(slices.DeleteFunc(b.kept, func(k bestCheckpoint) bool { return k.Step == step }), c)
	slices.SortFunc(b.kept, b.better)
	return b.publish()
}

// isGone reports whether a checkpoint was deleted, perhaps with the logdir.
func (b *bestCheckpoints) isGone(k bestCheckpoint) bool {
	return !layout.Exists(filepath.Join(b.dir, k.Name))
}

// save writes the model with its evaluation in the manifest.
func (b *bestCheckpoints) save(ctx context.Context, sess session.Session, step int64, e *evaluation) error {
	cut, err := b.saver.Snapshot(ctx, sess, "")
	if err != nil {
		return err
	}
	cut.Metrics, cut.Measured = e.byName(), make(map[string]manifest.Measurement)
	for _, name := range e.names {
		cut.Measured[name] = manifest.Measurement{Step: step, Source: manifest.SourceEval}
	}
	if _, err = b.saver.Write(ctx, cut, filepath.Join(b.dir, b.base), step); err != nil {
		return &unwrittenError{err}
	}
	return nil
}

// unwrittenError says that a checkpoint could not be written, here or by the servers.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return e.err.Error() }
func (e *unwrittenError) Unwrap() error { return e.err }

// publish makes the record and the files agree with what is kept: first it writes the record, so
// that it never names missing checkpoints, then it deletes the checkpoints that are no longer in
// it, unless they are pinned.
func (b *bestCheckpoints) publish() error {
	b.kept = b.kept[:min(len(b.kept), b.keep)]
	text, err := json.MarshalIndent(bestRecord{recordVersion, b.metric, b.mode(), b.kept}, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(b.fsys, filepath.Join(b.dir, logdir.BestFile), append(text, '\n')); err != nil {
		return err
	}
	if err := b.updateState(); err != nil {
		return err
	}
	all, err := ckptdir.List(b.dir)
	if err != nil {
		return err
	}
	for _, c := range all {
		best := slices.ContainsFunc(b.kept, func(k bestCheckpoint) bool { return k.Name == filepath.Base(c.Prefix) })
		if best || checkpoint.IsPinned(c.Prefix) {
			continue
		}
		if err := ckptdir.Remove(c.Prefix, &ckptfmt.FileOptions{FS: b.fsys}); err != nil {
			return err
		}
	}
	return nil
}

// updateState writes the folder's state file: the best checkpoint is its
// newest, so that anyone who loads "the latest" of the folder gets the best.
func (b *bestCheckpoints) updateState() error {
	state := new(tfpb.CheckpointState)
	for _, k := range slices.Backward(b.kept) {
		state.AllModelCheckpointPaths = append(state.AllModelCheckpointPaths, filepath.Join(b.dir, k.Name))
	}
	state.ModelCheckpointPath = filepath.Join(b.dir, b.kept[0].Name)
	return ckptdir.UpdateState(b.dir, state, &ckptdir.StateOptions{FS: b.fsys, RelativePaths: true})
}
