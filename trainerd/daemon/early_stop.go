package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/session"
)

// earlyStopFile is the file in the logdir with the evaluations that early stopping has counted, so
// that a resumed training stops where it would have stopped without the interruption.
const earlyStopFile = "early_stopping.json"

// earlyStop ends a training whose evaluations no longer become better. A nil one
// never does.
type earlyStop struct {
	name     string // of the file
	fsys     ckptfmt.FS
	patience int  // evaluations without a better one after which it ends
	less     bool // less of the metric is better
	log      *slog.Logger
	writing  chan struct{} // holds a value while the file is written

	mu      sync.Mutex // guards what follows: saves write it, evaluations add to it
	record  earlyStopRecord
	unsaved bool // the file does not have all of record
}

// earlyStopRecord is what earlyStopFile has.
type earlyStopRecord struct {
	Version     int             `json:"version"`
	Metric      string          `json:"metric"`
	Mode        string          `json:"mode"`
	Evaluations []measuredValue `json:"evaluations"`
}

type measuredValue struct {
	Step  int64           `json:"step"`
	Value manifest.Metric `json:"value"`
}

// newEarlyStop returns what train.early_stopping asks for, nil for none.
func newEarlyStop(j *job) *earlyStop {
	if j.config.Train.EarlyStopping == 0 || len(j.program.Metrics) == 0 {
		return nil
	}
	metric, less := j.choosingMetric()
	e := &earlyStop{fsys: j.fsys, name: filepath.Join(j.config.Logdir, earlyStopFile), patience: j.config.Train.EarlyStopping, less: less, log: j.log,
		writing: make(chan struct{}, 1)}
	e.record = earlyStopRecord{Version: recordVersion, Metric: metric, Mode: modeName(less)}
	return e
}

// begin learns the evaluations of earlier runs, up to a step.
func (e *earlyStop) begin(step int64) error {
	if e == nil {
		return nil
	}
	text, err := atomicfile.ReadFileLimit(nil, e.name, maxRecord, nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unsaved = false
	if errors.Is(err, fs.ErrNotExist) {
		e.record.Evaluations = nil
		return nil
	}
	if err != nil {
		return err
	}
	var r earlyStopRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return &recordError{e.name, err, "early stopping begins to count again"}
	}
	if err := checkVersion(e.name, r.Version); err != nil {
		return err
	}
	e.record.Evaluations = nil
	if r.Metric == e.record.Metric && r.Mode == e.record.Mode {
		e.record.Evaluations = slices.DeleteFunc(r.Evaluations, func(m measuredValue) bool { return m.Step > step })
	}
	return nil
}

// add counts an evaluation, for write.
func (e *earlyStop) add(step int64, result *evaluation) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if value, ok := result.value(e.record.Metric); ok {
		e.record.Evaluations = append(e.record.Evaluations, measuredValue{step, manifest.Metric(value)})
		e.unsaved = true
	}
}

// write makes the counts durable. A file that was removed meanwhile, perhaps with its logdir, is
// written again, because otherwise the training would not end where it should.
func (e *earlyStop) write() error {
	if e == nil {
		return nil
	}
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	e.mu.Lock()
	record, unsaved := e.record, e.unsaved // evaluations are only added, and a disk may take long
	e.mu.Unlock()
	if len(record.Evaluations) == 0 {
		return nil
	}
	if _, err := os.Stat(e.name); err == nil && !unsaved {
		return nil
	}
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	if err := atomicfile.WriteFile(e.fsys, e.name, append(text, '\n')); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unsaved = len(e.record.Evaluations) > len(record.Evaluations)
	return nil
}

// listener writes the count before a checkpoint becomes current: a run that resumes
// from it would otherwise miss evaluations. After the save it looks once more: the logdir
// may have been deleted, and made again, during it.
func (e *earlyStop) listener() trainerd.CheckpointListener {
	return trainerd.ListenerFuncs{
		BeforeSaveFunc: func(context.Context, session.Session) error { return e.write() },
		AfterSaveFunc: func(context.Context, trainerd.SavedCheckpoint) error {
			if err := e.write(); err != nil {
				e.log.Warn("what early stopping goes by could not be written; trying again at the next save", "err", err)
			}
			return nil
		},
	}
}

// best returns the best evaluation, the earliest of equals, and how many came after it. One without
// a number, as the share of nothing is, is never better.
func (e *earlyStop) best() (best measuredValue, after int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, m := range e.record.Evaluations {
		if i == 0 || e.isBetter(float64(m.Value), float64(best.Value)) {
			best, after = m, 0
		} else {
			after++
		}
	}
	return best, after
}

func (e *earlyStop) isBetter(v, than float64) bool {
	switch {
	case math.IsNaN(v):
		return false
	case math.IsNaN(than):
		return true
	case e.less:
		return v < than
	}
	return v > than
}

// due reports whether the training is to end.
func (e *earlyStop) due() bool {
	if e == nil {
		return false
	}
	_, after := e.best()
	return after >= e.patience
}

// reason says why the training has ended.
func (e *earlyStop) reason() string {
	best, after := e.best()
	return fmt.Sprintf("the best test %s, %.4g, was that of step %d; %d evaluations since have not been better (train.early_stopping)",
		e.record.Metric, best.Value, best.Step, after)
}

// endedAt reports whether a training has ended at a step because of early stopping.
func (e *earlyStop) endedAt(step int64) bool {
	return e != nil && e.lastStep() == step && e.due()
}

// lastStep returns the step of the last evaluation, -1 for none.
func (e *earlyStop) lastStep() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.record.Evaluations) == 0 {
		return -1
	}
	return e.record.Evaluations[len(e.record.Evaluations)-1].Step
}

// endedEarly reports whether the training of the logdir has ended at a step because
// of early stopping.
func (j *job) endedEarly(step int64) bool {
	e := newEarlyStop(j)
	return e != nil && e.begin(step) == nil && e.endedAt(step)
}
