//go:build unix

package world

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A defect is planted where the parts of the world meet, to see whether the rules
// find it. A nil defect is none.
type defect struct {
	name       string
	seed       uint64 // the first to try
	disk       func(atomicfile.FS) atomicfile.FS
	store      func(session.VariableStore) session.VariableStore
	job        func(job) job
	events     func(*tfevents.FileWriterOptions)
	supervisor func(*trainerd.Supervisor, *living)
}

var defects = []*defect{
	{name: "files are not synced", seed: 9, disk: faultfs.NoSync.Over},
	{name: "directories are not synced", seed: 7, disk: faultfs.NoDirSync.Over},
	{name: "files are written in place", seed: 612, disk: faultfs.InPlace.Over},
	{name: "errors of the disk are ignored", seed: 19, disk: faultfs.IgnoreErrors.Over},
	{name: "temporary files are left", seed: 11, disk: func(fsys atomicfile.FS) atomicfile.FS { return removing{fsys, keepTemps} }},
	{name: "a rotation removes one too many", seed: 13, disk: func(fsys atomicfile.FS) atomicfile.FS { return removing{fsys, removeAnother} }},
	{name: "a file outside the logdir", disk: func(fsys atomicfile.FS) atomicfile.FS { return littering{fsys} }},
	{name: "a variable is not restored", store: func(s session.VariableStore) session.VariableStore {
		return restoring{s, func(values []ckptfmt.NamedTensor) []ckptfmt.NamedTensor {
			return slices.DeleteFunc(values, func(v ckptfmt.NamedTensor) bool { return v.Name == "average" || v.Name == "logits/bias" })
		}}
	}},
	{name: "random state is not restored", seed: 2, store: func(s session.VariableStore) session.VariableStore {
		return restoring{s, func(values []ckptfmt.NamedTensor) []ckptfmt.NamedTensor {
			return slices.DeleteFunc(values, func(v ckptfmt.NamedTensor) bool { return strings.HasPrefix(v.Name, session.StatePrefix) })
		}}
	}},
	{name: "random state is not saved", seed: 2, store: func(s session.VariableStore) session.VariableStore {
		return cutting{s, func(cut *session.Snapshot) { cut.State = nil }}
	}},
	{name: "the step is restored as the next one", store: func(s session.VariableStore) session.VariableStore {
		return restoring{s, func(values []ckptfmt.NamedTensor) []ckptfmt.NamedTensor {
			for i, v := range values {
				if n, err := session.ScalarInt(v.Tensor); err == nil && v.Name == session.DefaultGlobalStep {
					values[i].Tensor = ckptfmt.Scalar(n + 1)
				}
			}
			return values
		}}
	}},
	{name: "weights are saved with half of their bits", store: func(s session.VariableStore) session.VariableStore {
		return cutting{s, func(cut *session.Snapshot) {
			for i, v := range cut.Tensors {
				if len(v.Shape) == 0 {
					continue
				}
				data := slices.Clone(v.Data)
				for at := 0; at < len(data); at += 4 {
					data[at], data[at+1] = 0, 0
				}
				cut.Tensors[i] = &ckptfmt.Tensor{DType: v.DType, Shape: v.Shape, Data: data}
			}
		}}
	}},
	{name: "a variable is saved as it was before", store: newStale},
	{name: "a save is announced before it is durable", seed: 2, supervisor: func(sv *trainerd.Supervisor, l *living) {
		sv.Listeners = append(sv.Listeners, early{l})
	}},
	{name: "there is no save at the end", seed: 2, supervisor: func(sv *trainerd.Supervisor, _ *living) { sv.SaveModelEvery, sv.SaveModelSteps = -1, 0 }},
	{name: "the first step after a start is left out", seed: 1, job: func(j job) job { return &skipping{job: j} }},
	{name: "a point has the loss of the step before", job: func(j job) job { return &late{job: j} }},
	{name: "who looks on trains", seed: 2, job: func(j job) job { return meddling{j} }},
	{name: "START cuts off the restored step", seed: 1, supervisor: func(sv *trainerd.Supervisor, _ *living) { sv.StartAtRestoredStep = true }},
	{name: "events are not synced before a checkpoint", seed: 7, events: func(o *tfevents.FileWriterOptions) { o.Sync = tfevents.SyncNever }},
}

func (d *defect) overDisk(fsys atomicfile.FS) atomicfile.FS {
	if d == nil || d.disk == nil {
		return fsys
	}
	return d.disk(fsys)
}

func (d *defect) overSession(s session.Session) session.Session {
	store, ok := s.(session.VariableStore)
	if d == nil || d.store == nil || !ok {
		return s
	}
	return d.store(store)
}

func (d *defect) overJob(j job) job {
	if d == nil || d.job == nil {
		return j
	}
	return d.job(j)
}

func (d *defect) overEvents(o *tfevents.FileWriterOptions) {
	if d != nil && d.events != nil {
		d.events(o)
	}
}

func (d *defect) overSupervisor(sv *trainerd.Supervisor, l *living) {
	if d != nil && d.supervisor != nil {
		d.supervisor(sv, l)
	}
}

// removing removes other files than it is told.
type removing struct {
	atomicfile.FS
	remove func(fsys atomicfile.FS, name string) error
}

func (d removing) Remove(name string) error { return d.remove(d.FS, name) }

func keepTemps(fsys atomicfile.FS, name string) error {
	if atomicfile.IsTemp(filepath.Base(name)) {
		return nil
	}
	return fsys.Remove(name)
}

func removeAnother(fsys atomicfile.FS, name string) error {
	if strings.HasSuffix(name, ".index") {
		others, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*.index"))
		if err != nil {
			return err
		}
		for _, other := range others {
			if other != name {
				if err := fsys.Remove(other); err != nil {
					return err
				}
			}
		}
	}
	return fsys.Remove(name)
}

// littering leaves a file next to the logdir.
type littering struct{ atomicfile.FS }

func (d littering) SyncDir(name string) error {
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "core"), nil, 0o666); err != nil {
		return err
	}
	return d.FS.SyncDir(name)
}

// restoring restores other values than it is given.
type restoring struct {
	session.VariableStore
	change func([]ckptfmt.NamedTensor) []ckptfmt.NamedTensor
}

func (s restoring) Restore(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.VariableStore.Restore(ctx, s.change(slices.Clone(values)))
}

// cutting gives other values than it has.
type cutting struct {
	session.VariableStore
	change func(*session.Snapshot)
}

func (s cutting) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	cut, err := s.VariableStore.Snapshot(ctx, names)
	if err == nil {
		s.change(cut)
	}
	return cut, err
}

// newStale gives the last variable of a snapshot as the snapshot before had it.
func newStale(s session.VariableStore) session.VariableStore {
	var mu sync.Mutex
	before := map[int]*ckptfmt.Tensor{}
	return cutting{s, func(cut *session.Snapshot) {
		mu.Lock()
		defer mu.Unlock()
		n := len(cut.Tensors)
		if n == 0 {
			return
		}
		last := cut.Tensors[n-1]
		if old := before[n]; old != nil {
			cut.Tensors[n-1] = old
		}
		before[n] = last
	}}
}

// early announces what is about to be saved.
type early struct{ *living }

func (e early) BeforeSave(ctx context.Context, s session.Session) error {
	step, err := session.ReadStep(ctx, s, session.DefaultGlobalStep)
	e.fs.Mark(step + 1)
	return err
}

func (early) AfterSave(context.Context, trainerd.SavedCheckpoint) error { return nil }

// skipping computes the first step and forgets it.
type skipping struct {
	job
	stepped bool
}

func (j *skipping) step(ctx context.Context, s session.Session) (int64, float64, error) {
	if j.stepped {
		return j.job.step(ctx, s)
	}
	j.stepped = true
	if _, _, err := j.job.step(ctx, s); err != nil {
		return 0, 0, err
	}
	return j.job.step(ctx, s)
}

// late reports the loss of the step before.
type late struct {
	job
	before float64
}

func (j *late) step(ctx context.Context, s session.Session) (int64, float64, error) {
	step, loss, err := j.job.step(ctx, s)
	loss, j.before = j.before, loss
	return step, loss, err
}

// meddling trains when it is to look.
type meddling struct{ job }

func (j meddling) look(ctx context.Context, s session.Session) error {
	_, _, err := j.job.step(ctx, s)
	return err
}

// shortPlan is a plan without the pauses of a day, in which a run looks at its lock ten
// thousand times.
func shortPlan(seed uint64) *plan {
	p := firstPlan(seed)
	p.lives = slices.DeleteFunc(p.lives, func(l life) bool { return l.event.name == "long-pause" })
	return p
}

// Each planted defect is found.
func TestDefectsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("some 200 histories")
	}
	const most = 200
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			for seed := d.seed; seed < d.seed+most; seed++ {
				_, err := shortPlan(seed).run(t, d, nil)
				if err == nil {
					continue
				}
				t.Logf("seed %d: %v", seed, err)
				if _, err := shortPlan(seed).run(t, nil, nil); err != nil {
					t.Errorf("seed %d breaks a rule without the defect too: %v", seed, err)
				}
				return
			}
			t.Errorf("not found in %d histories", most)
		})
	}
}
