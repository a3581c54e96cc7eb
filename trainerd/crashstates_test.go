package trainerd

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
)

var crashStates = flag.Int("crashstates", 10_000, "how many different crash states to resume from")

// A crashScenario is a way of saving whose crashes are gone through.
type crashScenario struct {
	name  string
	saver Saver // by value: each life has one of its own
	// oneName saves without step numbers, so that each save overwrites the last.
	oneName bool
}

var crashScenarios = []*crashScenario{
	{name: "rotation of two"},
	{name: "no rotation, graph", saver: Saver{MaxToKeep: -1, MetaGraph: &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}}},
	{name: "three shards", saver: Saver{Shards: 3}},
	{name: "one name", oneName: true},
	{name: "one name, three shards", saver: Saver{Shards: 3}, oneName: true},
	{name: "V1", saver: Saver{Format: FormatV1}},
	{name: "absolute paths, no manifest", saver: Saver{AbsolutePaths: true, NoManifest: true, MaxToKeep: 1}},
}

// newSaver returns a Saver on a file system.
func (c *crashScenario) newSaver(fsys ckptfmt.FS) *Saver {
	s := &Saver{FS: fsys, MaxToKeep: 2, Shards: c.saver.Shards, Format: c.saver.Format, AbsolutePaths: c.saver.AbsolutePaths,
		NoManifest: c.saver.NoManifest, MetaGraph: c.saver.MetaGraph}
	if c.saver.MaxToKeep != 0 {
		s.MaxToKeep = c.saver.MaxToKeep
	}
	return s
}

// crashModel is a model each of whose values tells the step it belongs to. It
// spans several sectors of a disk.
func crashModel() *fakeModel {
	m := newFakeModel(crashValues(0))
	return m
}

func crashValues(step int64) map[string]*ckptfmt.Tensor {
	vars := map[string]*ckptfmt.Tensor{"global_step": ckptfmt.Scalar(step)}
	for i, name := range []string{"a", "b", "c"} {
		values := make([]float32, 150)
		for j := range values {
			values[j] = float32(step)*1000 + float32(i*100+j)
		}
		vars[name] = vector(values...)
	}
	return vars
}

func setCrashStep(m *fakeModel, step int64) {
	for name, v := range crashValues(step) {
		m.set(name, v)
	}
}

const crashLogdir = "logdir"

// live is one life of a training: it resumes, makes so many steps, and saves
// every second. What it announces is marked on the disk.
//
// Its logdir is a new directory, whose name can be lost too.
func (c *crashScenario) live(t *testing.T, root string, fsys ckptfmt.FS, marks *faultfs.FS, steps int64) error {
	m, dir := crashModel(), filepath.Join(root, crashLogdir)
	if c.oneName {
		return c.liveOneName(t, dir, fsys, marks, steps)
	}
	sv := newSupervisor(m, dir, 2)
	sv.Saver = c.newSaver(fsys)
	sv.MetaGraph = c.saver.MetaGraph
	sv.OnSave = func(s SavedCheckpoint) { marks.Mark(s.Step) }
	return sv.Run(t.Context(), func(ctx context.Context, _ Session) error {
		first, err := scalarInt(m.get("global_step"))
		for step := first + 1; step <= first+steps && err == nil; step++ {
			setCrashStep(m, step)
			err = sv.StepDone(ctx, step)
		}
		return err
	})
}

func (c *crashScenario) liveOneName(t *testing.T, dir string, fsys ckptfmt.FS, marks *faultfs.FS, steps int64) error {
	m := crashModel()
	mgr := &SessionManager{NewSession: m.newSession, InitOp: Nodes("init"), Saver: c.newSaver(fsys), CheckpointDir: dir}
	sess, _, err := mgr.PrepareSession(t.Context())
	if err != nil {
		return err
	}
	defer sess.Close()
	first, err := scalarInt(m.get("global_step"))
	for step := first + 1; step <= first+steps && err == nil; step++ {
		setCrashStep(m, step)
		if _, err = mgr.Saver.Save(t.Context(), sess, filepath.Join(dir, "model.ckpt"), NoStep); err == nil {
			marks.Mark(step)
		}
	}
	return err
}

// judge resumes in a directory that a crash has left: at the step that was
// announced or a later one, with all bytes of that step.
func (c *crashScenario) judge(t *testing.T, root string, announced int64) error {
	m, dir := crashModel(), filepath.Join(root, crashLogdir)
	mgr := &SessionManager{NewSession: m.newSession, InitOp: Nodes("init"), Saver: c.newSaver(nil), CheckpointDir: dir}
	sess, prepared, err := mgr.PrepareSession(t.Context())
	if err != nil {
		return fmt.Errorf("torn: %w", err)
	}
	defer sess.Close()
	step, err := scalarInt(m.get("global_step"))
	if err != nil {
		return err
	}
	for name, want := range crashValues(step) {
		if !bytes.Equal(m.get(name).Data, want.Data) {
			return fmt.Errorf("torn: %s of %s is not that of step %d", name, prepared.Restored, step)
		}
	}
	if named := stepOf(prepared.Restored); step < announced || named != NoStep && named != step {
		return fmt.Errorf("lost: step %d was announced, resumed at %d from %q", announced, step, prepared.Restored)
	}
	return nil
}

// crashSearch goes through the crash states of a scenario.
type crashSearch struct {
	*crashScenario
	seen  map[[32]byte]struct{}
	rnd   *rand.Rand
	dir   string // where states are laid out
	limit int    // of different states

	states, deep, bad int
	worst             error
	worstState        faultfs.State
}

func newCrashSearch(t *testing.T, c *crashScenario, limit int) *crashSearch {
	return &crashSearch{crashScenario: c, seen: make(map[[32]byte]struct{}), rnd: rand.New(rand.NewPCG(11, 12)), dir: memoryDir(t), limit: limit}
}

// wrap is the file system that a life gets over the one that records.
type wrap func(*faultfs.FS) ckptfmt.FS

func sound(f *faultfs.FS) ckptfmt.FS { return f }

// run records lives and resumes from what crashes leave of them: first what is
// not left to chance, after every operation, then mixtures until there were
// enough different states.
func (s *crashSearch) run(t *testing.T, over wrap) {
	for random := 1; random == 1 || s.states < s.limit; random = 16 {
		before := s.states
		root, fsys := memoryDir(t), faultfs.New(0)
		fsys.Mark(0)
		for range 2 {
			mustNoErr(t, s.live(t, root, over(fsys), fsys, 5))
		}
		s.walk(t, root, fsys, over, random)
		if s.states == before {
			return // there are no others
		}
	}
}

// walk goes through the crash states after each operation.
func (s *crashSearch) walk(t *testing.T, root string, fsys *faultfs.FS, over wrap, random int) {
	disk := faultfs.NewDisk(root, faultfs.State{})
	for n := range fsys.Replay(disk) {
		for state := range disk.States(s.rnd, random) {
			if random > 1 && s.states >= s.limit {
				return
			}
			if s.try(t, state, fmt.Sprintf("after operation %d", n)) && s.rnd.IntN(deepEvery) == 0 {
				s.recover(t, state, over)
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

// recover lets a run go on after a crash, and crashes it again.
func (s *crashSearch) recover(t *testing.T, state faultfs.State, over wrap) {
	root := memoryDir(t)
	defer os.RemoveAll(root)
	mustNoErr(t, state.LayOut(root))
	fsys := faultfs.New(0)
	if err := s.live(t, root, over(fsys), fsys, 2); err != nil {
		s.note(fmt.Errorf("no run after %s: %w", state.What, err), state)
		return
	}
	disk := faultfs.NewDisk(root, state)
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
	sum := state.Sum()
	if _, again := s.seen[sum]; again {
		return false
	}
	s.seen[sum] = struct{}{}
	s.states++
	mustNoErr(t, state.LayOut(s.dir))
	if err := s.judge(t, s.dir, state.Marked); err != nil {
		s.note(fmt.Errorf("%s, %s: %w", when, state.What, err), state)
	}
	return true
}

func (s *crashSearch) note(err error, state faultfs.State) {
	if s.bad++; s.bad == 1 {
		s.worst, s.worstState = err, state
	}
}

// keep lays the first bad state out where it stays after the test.
func (s *crashSearch) keep(t *testing.T) string {
	dir, err := os.MkdirTemp("", "crashstate")
	mustNoErr(t, err)
	mustNoErr(t, s.worstState.LayOut(dir))
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
