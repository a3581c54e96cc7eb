package trainerd

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

var crashStates = flag.Int("crashstates", 10_000, "how many different crash states to resume from")

// A crashScenario is a way of saving whose crashes are gone through.
type crashScenario struct {
	name  string
	saver checkpoint.Saver // by value: each life has one of its own
	// oneName saves without step numbers, so that each save overwrites the last.
	oneName bool
	// sameStep trains without raising the global step, so that each save of the
	// run replaces the last.
	sameStep bool
}

var crashScenarios = []*crashScenario{
	{name: "rotation of two"},
	{name: "no rotation, graph", saver: checkpoint.Saver{MaxToKeep: -1, MetaGraph: &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}}},
	{name: "three shards", saver: checkpoint.Saver{Shards: 3}},
	{name: "one name", oneName: true},
	{name: "one name, three shards", saver: checkpoint.Saver{Shards: 3}, oneName: true},
	{name: "V1", saver: checkpoint.Saver{Format: checkpoint.FormatV1}},
	{name: "same step", sameStep: true},
	{name: "same step, three shards, graph", sameStep: true, saver: checkpoint.Saver{Shards: 3, MetaGraph: &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}}},
	{name: "same step, V1", sameStep: true, saver: checkpoint.Saver{Format: checkpoint.FormatV1}},
	{name: "absolute paths, no manifest", saver: checkpoint.Saver{AbsolutePaths: true, NoManifest: true, MaxToKeep: 1}},
	{name: "same step, V1, three shards", sameStep: true, saver: checkpoint.Saver{Format: checkpoint.FormatV1, Shards: 3}},
	{name: "one name, V1, three shards", oneName: true, saver: checkpoint.Saver{Format: checkpoint.FormatV1, Shards: 3}},
	{name: "same step, V1, three shards, graph, no manifest", sameStep: true,
		saver: checkpoint.Saver{Format: checkpoint.FormatV1, Shards: 3, NoManifest: true, MetaGraph: &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}}},
}

// newSaver returns a Saver on a file system.
func (c *crashScenario) newSaver(fsys ckptfmt.FS) *checkpoint.Saver {
	s := &checkpoint.Saver{FS: fsys, MaxToKeep: 2, Shards: c.saver.Shards, Format: c.saver.Format, AbsolutePaths: c.saver.AbsolutePaths,
		NoManifest: c.saver.NoManifest, MetaGraph: c.saver.MetaGraph}
	if c.saver.MaxToKeep != 0 {
		s.MaxToKeep = c.saver.MaxToKeep
	}
	return s
}

// A crashPlan is what the lives of a training are like.
type crashPlan struct {
	lives int
	steps int64 // of each life
	first int64 // the step that the model begins at
	every int64 // steps between saves
	size  int   // of a variable
	// sameStep leaves the global step as it is.
	sameStep bool
	// fault is one that the disk has besides, which no crash state may show.
	fault faultfs.Fault
}

// momentName is the variable that says which step the others are of, also where
// the global step does not.
const momentName = "moment"

var firstCrashPlan = crashPlan{lives: 2, steps: 5, every: 2, size: 150}

// anotherCrashPlan returns a plan in which other names, and other ends of the
// sectors of a disk, come up.
func anotherCrashPlan(rnd *rand.Rand) crashPlan {
	plan := crashPlan{
		lives: 1 + rnd.IntN(3),
		steps: 1 + rnd.Int64N(8),
		first: []int64{0, 5, 96, 997, 99_997}[rnd.IntN(5)],
		every: 1 + rnd.Int64N(3),
		size:  1 + rnd.IntN(400),
	}
	if rnd.IntN(3) == 0 {
		plan.fault = diskFull(1 + rnd.IntN(200))
		plan.fault.Short = rnd.IntN(2) == 0
	}
	return plan
}

// diskFull is a disk that is full for one operation, or never if that is 0.
func diskFull(operation int) faultfs.Fault {
	return faultfs.Fault{At: operation, Err: syscall.ENOSPC}
}

// model returns a model each of whose values tells the step it belongs to.
func (p crashPlan) model() *sessiontest.Model { return sessiontest.NewModel(p.values(p.first)) }

func (p crashPlan) values(step int64) map[string]*ckptfmt.Tensor {
	vars := map[string]*ckptfmt.Tensor{"global_step": ckptfmt.Scalar(step), momentName: ckptfmt.Scalar(step)}
	if p.sameStep {
		vars["global_step"] = ckptfmt.Scalar(p.first)
	}
	for i, name := range []string{"a", "b", "c"} {
		values := make([]float32, p.size)
		for j := range values {
			values[j] = float32(step%10_000)*1000 + float32(i*100+j)
		}
		vars[name] = sessiontest.Vector(values...)
	}
	return vars
}

func (p crashPlan) setStep(m *sessiontest.Model, step int64) {
	for name, v := range p.values(step) {
		m.Set(name, v)
	}
}

const crashLogdir = "logdir"

// record lives the lives of a plan in a directory, and returns what they did on
// its disk. A life that the plan's fault has ended is the last. The clock is one
// that is the same each time, so that two states differ by more than the time.
func (c *crashScenario) record(t *testing.T, plan crashPlan, root string, over wrap) (*faultfs.FS, error) {
	fsys := faultfs.NewFault(plan.fault)
	var err error
	synctest.Test(t, func(t *testing.T) {
		for i := 0; i < plan.lives && err == nil; i++ {
			time.Sleep(time.Second)
			err = c.live(t, plan, root, over(fsys), fsys)
		}
	})
	if errors.Is(err, faultfs.ErrInjected) || plan.fault.Short && errors.Is(err, io.ErrShortWrite) {
		return fsys, nil
	}
	return fsys, err
}

// live is one life of a training: it resumes, makes its steps, and saves.
// What it announces is marked on the disk.
//
// Its logdir is a new directory, whose name can be lost too.
func (c *crashScenario) live(t *testing.T, plan crashPlan, root string, fsys ckptfmt.FS, marks *faultfs.FS) error {
	m, dir := plan.model(), filepath.Join(root, crashLogdir)
	if c.oneName {
		return c.liveOneName(t, plan, dir, fsys, marks)
	}
	sv := newSupervisor(m, dir, plan.every)
	sv.Saver = c.newSaver(fsys)
	sv.MetaGraph = c.saver.MetaGraph
	sv.Listeners = []CheckpointListener{&momentMarker{model: m, disk: marks}}
	return sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		first, err := session.ScalarInt(m.Get(momentName))
		for step := first + 1; step <= first+plan.steps && err == nil; step++ {
			plan.setStep(m, step)
			err = sv.StepDone(ctx, step)
		}
		return err
	})
}

// momentMarker marks on a disk what is announced as saved.
type momentMarker struct {
	model *sessiontest.Model
	disk  *faultfs.FS
	saved int64
}

func (l *momentMarker) BeforeSave(context.Context, session.Session) (err error) {
	l.saved, err = session.ScalarInt(l.model.Get(momentName))
	return err
}

func (l *momentMarker) AfterSave(context.Context, SavedCheckpoint) error {
	l.disk.Mark(l.saved)
	return nil
}

func (c *crashScenario) liveOneName(t *testing.T, plan crashPlan, dir string, fsys ckptfmt.FS, marks *faultfs.FS) error {
	m := plan.model()
	mgr := &SessionManager{NewSession: m.NewSession, InitOp: Nodes("init"), Saver: c.newSaver(fsys), CheckpointDir: dir}
	sess, prepared, err := mgr.PrepareSession(t.Context())
	if err != nil {
		return err
	}
	defer sess.Close()
	mgr.Saver.Reinstate(prepared.Restored)
	first, err := session.ScalarInt(m.Get(momentName))
	for step := first + 1; step <= first+plan.steps && err == nil; step++ {
		plan.setStep(m, step)
		if _, err = mgr.Saver.Save(t.Context(), sess, filepath.Join(dir, "model.ckpt"), session.NoStep); err == nil {
			marks.Mark(step)
		}
	}
	return err
}

// judge resumes in a directory that a crash has left: at the step that was
// announced or a later one, with all bytes of that step.
func (c *crashScenario) judge(t *testing.T, plan crashPlan, root string, announced int64) error {
	m, dir := plan.model(), filepath.Join(root, crashLogdir)
	mgr := &SessionManager{NewSession: m.NewSession, InitOp: Nodes("init"), Saver: c.newSaver(readOnly{}), CheckpointDir: dir}
	sess, prepared, err := mgr.PrepareSession(t.Context())
	if err != nil {
		return fmt.Errorf("torn: %w", err)
	}
	defer sess.Close()
	step, err := session.ScalarInt(m.Get(momentName))
	if err != nil {
		return err
	}
	for name, want := range plan.values(step) {
		if !bytes.Equal(m.Get(name).Data, want.Data) {
			return fmt.Errorf("torn: %s of %s is not that of step %d", name, prepared.Restored, step)
		}
	}
	named := ckptdir.StepOf(prepared.Restored)
	if c.sameStep && named == plan.first {
		named = step
	}
	if step < announced || named != session.NoStep && named != step {
		return fmt.Errorf("lost: step %d was announced, resumed at %d from %q", announced, step, prepared.Restored)
	}
	return nil
}

var errReadOnly = errors.New("resuming changes something on the disk")

// readOnly is the file system of a search for crash states: what one state is
// resumed from must be as it was for the next.
type readOnly struct{}

func (readOnly) Create(string) (atomicfile.File, error) { return nil, errReadOnly }
func (readOnly) Rename(string, string) error            { return errReadOnly }
func (readOnly) Remove(string) error                    { return errReadOnly }
func (readOnly) Mkdir(string) error                     { return errReadOnly }
func (readOnly) SyncDir(string) error                   { return errReadOnly }

// crashSearch goes through the crash states of a scenario.
//
// Trainings live, and states are laid out, in one directory, for the names in
// files can be absolute.
type crashSearch struct {
	*crashScenario
	seen  map[[32]byte]struct{}
	rnd   *rand.Rand
	dir   string
	tree  *faultfs.Tree
	plan  crashPlan
	limit int // of different states

	states, deep, bad int
	worst             error
	worstState        faultfs.State
}

func newCrashSearch(t *testing.T, c *crashScenario, limit int) *crashSearch {
	dir := sessiontest.MemoryDir(t)
	return &crashSearch{crashScenario: c, seen: make(map[[32]byte]struct{}), rnd: rand.New(rand.NewPCG(11, 12)),
		dir: dir, tree: faultfs.NewTree(dir), plan: c.of(firstCrashPlan), limit: limit}
}

// of returns a plan as the scenario lives it.
func (c *crashScenario) of(plan crashPlan) crashPlan {
	plan.sameStep = c.sameStep
	return plan
}

// wrap is the file system that a life gets over the one that records.
type wrap func(*faultfs.FS) ckptfmt.FS

func sound(f *faultfs.FS) ckptfmt.FS { return f }

// run records lives and resumes from what crashes leave of them: first what is
// not left to chance, after every operation, then mixtures, of other lives too,
// until there were enough different states.
func (s *crashSearch) run(t *testing.T, over wrap) {
	s.search(t, over, 1)
	// A plan may give nothing new, as one whose first operation fails.
	const patience = 100
	for fruitless := 0; s.states < s.limit && fruitless < patience; fruitless++ {
		before := s.states
		s.search(t, over, 16)
		if s.states > before {
			fruitless = 0
		}
		s.plan = s.of(anotherCrashPlan(s.rnd))
	}
}

// search records the lives of a plan and goes through the crash states after
// each operation.
func (s *crashSearch) search(t *testing.T, over wrap, random int) {
	begin := faultfs.State{Marked: s.plan.first}
	sessiontest.MustNoErr(t, s.tree.LayOut(begin))
	fsys, err := s.record(t, s.plan, s.dir, over)
	sessiontest.MustNoErr(t, err)
	s.tree.Forget()
	disk := faultfs.NewDisk(s.dir, begin)
	for n := range fsys.Replay(disk) {
		for state := range disk.States(s.rnd, random) {
			if random > 1 && s.states >= s.limit {
				return
			}
			if s.try(t, state, fmt.Sprintf("after operation %d", n)) && s.rnd.IntN(deepEvery) == 0 {
				s.recover(t, state, over, disk)
			}
		}
	}
}

// One of so many states is recovered from by a run that crashes too, after one
// of so many of its operations.
const (
	deepEvery   = 40
	deepSamples = 10
)

// recover lets a run go on after a crash, and crashes it again. After a kill
// what the process had not synced is still not, now that the machine crashes.
func (s *crashSearch) recover(t *testing.T, state faultfs.State, over wrap, before *faultfs.Disk) {
	sessiontest.MustNoErr(t, s.tree.LayOut(state))
	plan := s.plan
	plan.lives, plan.fault = 1, faultfs.Fault{}
	fsys, err := s.record(t, plan, s.dir, over)
	s.tree.Forget()
	if err != nil {
		s.note(fmt.Errorf("no run after %s: %w", state.What, err), state)
		return
	}
	disk := faultfs.NewDisk(s.dir, state)
	if state.What == "kill" {
		disk = before.Killed(s.dir)
	}
	for n := range fsys.Replay(disk) {
		if s.rnd.IntN(deepSamples) > 0 {
			continue
		}
		for again := range disk.States(s.rnd, 1) {
			if s.try(t, again, fmt.Sprintf("recovering from %s, after operation %d", state.What, n)) {
				s.deep++
			}
		}
	}
}

// try resumes from a state, unless it was tried before.
func (s *crashSearch) try(t *testing.T, state faultfs.State, when string) (isNew bool) {
	sum := state.Sum(plainName)
	if _, again := s.seen[sum]; again {
		return false
	}
	s.seen[sum] = struct{}{}
	s.states++
	sessiontest.MustNoErr(t, s.tree.LayOut(state))
	if err := s.judge(t, s.plan, s.dir, state.Marked); err != nil {
		s.note(fmt.Errorf("%s, %s: %w", when, state.What, err), state)
	}
	return true
}

// plainName returns the name of a file without what makes it a new one each
// time: the random number of a temporary file, the second and the running number
// of an events file. Two states that differ in nothing else are not different.
func plainName(name string) string {
	dir, base := filepath.Split(name)
	switch {
	case layout.IsTemp(base):
		return dir + "temporary"
	case tfevents.IsEventsFile(base):
		return dir + "events"
	}
	return name
}

func (s *crashSearch) note(err error, state faultfs.State) {
	if s.bad++; s.bad == 1 {
		s.worst, s.worstState = fmt.Errorf("%+v, %w", s.plan, err), state
	}
}

// keep lays the first bad state out where it stays after the test.
func (s *crashSearch) keep(t *testing.T) string {
	dir, err := os.MkdirTemp("", "crashstate")
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, s.worstState.LayOut(dir))
	return dir
}

// A crash after any operation, of the process or of the machine, in any state
// in which it may leave the disk, and again while the next run recovers from
// it: the run after that resumes from what was announced, whole.
func TestCrashStates(t *testing.T) {
	limit := *crashStates
	if testing.Short() {
		limit /= 10
	}
	var states, deep atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d crash states, %d of them of a recovery", states.Load(), deep.Load())
	})
	for _, c := range crashScenarios {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newCrashSearch(t, c, limit/len(crashScenarios)+1)
			s.run(t, sound)
			if s.bad > 0 {
				t.Errorf("%d of %d states are bad, the first: %v [kept in %s]", s.bad, s.states, s.worst, s.keep(t))
			}
			if s.states < s.limit {
				t.Errorf("only %d states; want %d", s.states, s.limit)
			}
			t.Logf("%d states, %d of them of a recovery", s.states, s.deep)
			states.Add(int64(s.states))
			deep.Add(int64(s.deep))
		})
	}
}

// A process that is killed leaves what it has not made durable, and the next one
// takes it for that: every such state, of a first save and of saves under one
// name.
func TestKillThenPowerCut(t *testing.T) {
	for _, c := range []*crashScenario{crashScenarios[3], crashScenarios[6], crashScenarios[9], crashScenarios[10], crashScenarios[11]} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newCrashSearch(t, c, 1)
			s.plan.lives, s.plan.steps = 1, 2
			s.killEverywhere(t)
			if s.bad > 0 {
				t.Errorf("%d of %d states are bad, the first: %v", s.bad, s.states, s.worst)
			}
			if s.states < 300 {
				t.Errorf("only %d states", s.states)
			}
		})
	}
}

// killEverywhere lives the plan once, kills that after each operation, lets the
// next process make a step, and goes through the crash states of that one.
func (s *crashSearch) killEverywhere(t *testing.T) {
	fsys, err := s.record(t, s.plan, s.dir, sound)
	sessiontest.MustNoErr(t, err)
	s.tree.Forget()
	s.plan.steps = 1
	disk := faultfs.NewDisk(s.dir, faultfs.State{})
	for n := range fsys.Replay(disk) {
		for state := range disk.States(s.rnd, 0) {
			sessiontest.MustNoErr(t, s.tree.LayOut(state)) // the first is that of a kill
			break
		}
		recovery, err := s.record(t, s.plan, s.dir, sound)
		sessiontest.MustNoErr(t, err)
		s.tree.Forget()
		again := disk.Killed(s.dir)
		for m := range recovery.Replay(again) {
			if again.Marked() > disk.Marked() {
				break // what it has saved by itself is another matter
			}
			for state := range again.States(s.rnd, 16) {
				s.try(t, state, fmt.Sprintf("killed after operation %d, after operation %d of the next process", n, m))
			}
		}
	}
}
