//go:build unix

package world

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A place is the folder of a history, on a disk of its own.
type place struct {
	root   string // holds the logdir and so many others
	others int
	dir    string // the logdir
	disk   *faultfs.Disk

	announced int64          // the step that was announced as saved last; NoStep before
	abandoned map[int64]bool // steps of checkpoints that a rewind has left behind
	lossy     bool           // a disk that failed may have cost points of the curve

	judge func(ctx context.Context) error // what a life has left
	view  *dataView                       // who looks at it; nil for nobody

	trained atomic.Int64 // the time that steps took
	faults  atomic.Int64
}

// An outcome is what a history had.
type outcome struct {
	trained time.Duration // in steps; pauses, and waiting for disks and restarts, do not count
	faults  int64         // and requests, that came to pass
}

func (p *place) outcome() outcome { return outcome{time.Duration(p.trained.Load()), p.faults.Load()} }

// suffered counts what has happened in a life.
func (p *place) suffered(happened bool) {
	if happened {
		p.faults.Add(1)
	}
}

// newPlace makes a fresh folder.
func newPlace(t *testing.T) *place {
	root, err := os.MkdirTemp(memory(), "world-")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{root: root, dir: filepath.Join(root, "logdir"), announced: session.NoStep, abandoned: map[int64]bool{}}
	p.disk, p.judge = faultfs.NewDisk(p.dir, faultfs.State{}), p.judgeCheckpoints
	if err := os.Mkdir(p.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return p
}

// leave removes the folder.
func (p *place) leave() {
	if !*keep {
		os.RemoveAll(p.root)
	}
}

// memory is a folder in memory where there is one, "" elsewhere.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// settle makes the logdir what the end of a life leaves of it.
func (p *place) settle(ctx context.Context, fsys *faultfs.FS, power bool, rnd *rand.Rand) error {
	for range fsys.Replay(p.disk) {
	}
	if power {
		states := slices.Collect(p.disk.States(rnd, 4))
		state := states[rnd.IntN(len(states))]
		times := p.times()
		if err := state.LayOut(p.dir); err != nil {
			return err
		}
		p.restoreTimes(times)
		p.disk = faultfs.NewDisk(p.dir, state)
	}
	p.announced = max(p.announced, p.disk.Marked()-1)
	if err := p.setTimes(); err != nil {
		return err
	}
	if err := p.judgeOutside(); err != nil {
		return err
	}
	if err := p.judge(ctx); err != nil {
		return err
	}
	return p.view.judge(ctx, false)
}

// judgeOutside wants nothing next to the logdir, which may be gone itself: somebody may remove
// it when all are about to end.
func (p *place) judgeOutside() error {
	outside, err := os.ReadDir(p.root)
	if err != nil {
		return err
	}
	outside = slices.DeleteFunc(outside, func(e os.DirEntry) bool { return e.Name() == filepath.Base(p.dir) })
	if len(outside) != p.others {
		return broke("%d files next to the logdir, want %d", len(outside), p.others)
	}
	return nil
}

// A timed is what a file has, and since when.
type timed struct {
	text string
	at   time.Time
}

// times returns those of all files.
func (p *place) times() map[string]timed {
	files := map[string]timed{}
	_ = filepath.WalkDir(p.dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			text, _ := os.ReadFile(name)
			files[name] = timed{string(text), info.ModTime()}
		}
		return nil
	})
	return files
}

// restoreTimes gives files that were laid out with what they had the times that they
// had: a power cut does not change them, and a program's file with another time is taken
// for one that the program has written again.
func (p *place) restoreTimes(before map[string]timed) {
	for name, was := range before {
		if text, err := os.ReadFile(name); err == nil && string(text) == was.text {
			os.Chtimes(name, was.at, was.at)
		}
	}
}

// setTimes gives the files the time of the history's clock, where the system gave
// them its own: some of them are removed when they are old.
func (p *place) setTimes() error {
	now := time.Now()
	return filepath.WalkDir(p.dir, func(name string, d os.DirEntry, err error) error {
		if name == p.dir && errors.Is(err, os.ErrNotExist) {
			return nil // somebody has removed it when all were about to end
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || d.Type() == os.ModeSymlink || !info.ModTime().After(now) { // a link's would be that of what it leads to
			return err
		}
		return os.Chtimes(name, now, now)
	})
}

// judgeCheckpoints judges the checkpoints that a life has left.
func (p *place) judgeCheckpoints(ctx context.Context) error {
	if p.announced < 0 {
		return nil
	}
	newest, _, err := ckptdir.NewestIntact(ctx, p.dir)
	if err != nil {
		return broke("step %d was announced, and there is no intact checkpoint: %w", p.announced, err)
	}
	if newest.Step < p.announced {
		return broke("step %d was announced, and the newest intact checkpoint is of step %d", p.announced, newest.Step)
	}
	return nil
}

// damageNewest turns a bit of the newest checkpoint's data, when there is an older
// one. What was announced is then what that one has.
func (p *place) damageNewest(rnd *rand.Rand) error {
	list, err := p.recorded()
	if err != nil || len(list) < 2 {
		return err
	}
	newest, older := list[len(list)-1], list[len(list)-2]
	if newest.Step < older.Step {
		newest, older = older, newest
	}
	files, err := filepath.Glob(newest.Prefix + "*")
	if err != nil {
		return err
	}
	for _, name := range files {
		if !isData(name) {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			return err
		}
		data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
		fsys := faultfs.New(0)
		if err := atomicfile.WriteFile(fsys, name, data); err != nil {
			return err
		}
		p.announced = min(p.announced, older.Step)
		fsys.Mark(p.announced + 1)
		for range fsys.Replay(p.disk) {
		}
		return nil
	}
	return nil
}

// abandon notes that the training goes back to a step: no later one continues from the
// checkpoints after it.
func (p *place) abandon(to int64) error {
	list, err := ckptdir.List(p.dir)
	for _, c := range list {
		if c.Step > to {
			p.abandoned[c.Step] = true
		}
	}
	return err
}

// recorded returns the checkpoints that the state file names, where there is one, and that
// no rewind has left behind, in its order: one that a killed run had not announced precedes those
// that were. Of a save that failed, a part or all of the files stay until the next training.
func (p *place) recorded() ([]ckptdir.Checkpoint, error) {
	list, err := ckptdir.List(p.dir)
	if err != nil {
		return nil, err
	}
	state, err := ckptdir.ReadState(p.dir, nil)
	named := err == nil
	if named {
		place := func(c ckptdir.Checkpoint) int { return slices.Index(state.AllModelCheckpointPaths, c.Prefix) }
		slices.SortStableFunc(list, func(a, b ckptdir.Checkpoint) int { return cmp.Compare(place(a), place(b)) })
	}
	return slices.DeleteFunc(list, func(c ckptdir.Checkpoint) bool {
		return p.abandoned[c.Step] || named && !slices.Contains(state.AllModelCheckpointPaths, c.Prefix) || ckptdir.Verify(context.Background(), c.Prefix) != nil
	}), nil
}

// isData reports whether a file holds the numbers of a checkpoint.
func isData(name string) bool {
	base := filepath.Base(name)
	return strings.Contains(base, ".data-") || !strings.Contains(strings.TrimPrefix(base, "model.ckpt"), ".")
}

// A link is later than the history's clock, and what it leads to keeps its time.
func TestLinksKeepTimes(t *testing.T) {
	p := newPlace(t)
	defer p.leave()
	file, later := filepath.Join(p.dir, "ckpt-20"), filepath.Join(p.dir, "later")
	synctest.Test(t, func(t *testing.T) {
		then, now := time.Now().Add(-time.Hour), time.Now()
		err := errors.Join(os.WriteFile(file, nil, 0o666), os.Chtimes(file, then, then), os.WriteFile(later, nil, 0o666),
			os.Symlink("ckpt-20", filepath.Join(p.dir, "latest")), p.setTimes())
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]time.Time{file: then, later: now} {
			if info, err := os.Stat(name); err != nil || !info.ModTime().Equal(want) {
				t.Errorf("%s has another time than %v: %v, %v", name, want, info, err)
			}
		}
	})
}

// A logdir that was removed at the end of a life is not a file too few next to it, nor does it hide
// one too many.
func TestRemovedLogdirAtTheEnd(t *testing.T) {
	p := newPlace(t)
	defer p.leave()
	for step, do := range []func() error{
		func() error { return nil },
		func() error { return os.Remove(p.dir) },
		func() error { return os.WriteFile(filepath.Join(p.root, "stray"), nil, 0o666) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if err := p.judgeOutside(); (err != nil) != (step == 2) {
			t.Errorf("step %d: %v", step, err)
		}
	}
}
