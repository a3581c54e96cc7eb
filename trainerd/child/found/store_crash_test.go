//go:build unix

package found

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// saving is a way in which programs save: none of them syncs anything.
type saving struct {
	name, pattern string
	files         func(step int) map[string]string // below the logdir
	rename        bool                             // under a temporary name first
}

var savings = []saving{
	{"a file", "ckpt-*.safetensors", func(step int) map[string]string {
		return map[string]string{fmt.Sprintf("ckpt-%d.safetensors", step): childtest.TensorsOf(step)}
	}, false},
	{"a file, renamed", "ckpt-*.safetensors", func(step int) map[string]string {
		return map[string]string{fmt.Sprintf("ckpt-%d.safetensors", step): childtest.TensorsOf(step)}
	}, true},
	{"a folder", "checkpoint-*", folderOf, false},
	{"a folder, renamed", "checkpoint-*", folderOf, true},
	{"a folder in a folder", "out/checkpoint-*", func(step int) map[string]string {
		files := map[string]string{}
		for name, text := range folderOf(step) {
			files["out/"+name] = text
		}
		return files
	}, false},
	{"one name, renamed", "last.safetensors", func(step int) map[string]string {
		return map[string]string{"last.safetensors": childtest.TensorsOf(step)}
	}, true},
	{"several files", "step_*", func(step int) map[string]string {
		return map[string]string{fmt.Sprintf("step_%d.safetensors", step): childtest.TensorsOf(step), fmt.Sprintf("step_%d.json", step): fmt.Sprintf(`{"step": %d}`, step)}
	}, false},
}

func folderOf(step int) map[string]string {
	dir := fmt.Sprintf("checkpoint-%d/", step)
	return map[string]string{dir + "model.safetensors": childtest.TensorsOf(step), dir + "optim/optimizer.safetensors": childtest.TensorsOf(step + 1000),
		dir + "trainer_state.json": fmt.Sprintf(`{"step": %d}`, step)}
}

// stepIn returns the step that a file of tensorsOf has.
func stepIn(name string) (step int64, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(b[len(b)-8:]), "%08d", &step)
	return step, err
}

// save writes a checkpoint as a program does.
func (sv *saving) save(disk atomicfile.FS, dir string, step int) error {
	files := sv.files(step)
	temp := func(name string) string { return name }
	if sv.rename {
		first := slices.Sorted(maps.Keys(files))[0]
		top := strings.Split(first, "/")[0]
		temp = func(name string) string { return top + ".tmp" + strings.TrimPrefix(name, top) }
		if left := filepath.Join(dir, top+".tmp"); len(files) == 1 {
			if _, err := os.Lstat(left); err == nil {
				disk.Remove(left) // of a save that failed
			}
		}
		if err := writeAll(disk, dir, files, temp); err != nil {
			return err
		}
		return disk.Rename(filepath.Join(dir, top+".tmp"), filepath.Join(dir, top))
	}
	return writeAll(disk, dir, files, temp)
}

func writeAll(disk atomicfile.FS, dir string, files map[string]string, temp func(string) string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts := strings.Split(temp(name), "/")
		for i := range parts[:len(parts)-1] {
			if err := disk.Mkdir(filepath.Join(dir, filepath.Join(parts[:i+1]...))); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		f, err := disk.Create(filepath.Join(dir, filepath.Join(parts...)))
		if err != nil {
			return err
		}
		_, err = f.Write([]byte(files[name]))
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// judge looks at a logdir that a crash has left, as the next run does: the newest
// verified checkpoint must be that of the step that was announced, or a later one,
// with all of its bytes, and keeping one must not change that.
func (sv *saving) judge(dir string, announced int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	s := New(root, sv.pattern, Options{Retention: []retention.Policy{retention.Last(1)}})
	if bad := s.ReadRecords(); bad != nil {
		return errors.Join(bad...)
	}
	s.Refresh(true)
	if err := s.Sweep(); err != nil {
		return err
	}
	clearDamaged(context.Background(), s) // a disk that fails is not the matter here
	if _, err := s.Rotate(); err != nil {
		return err
	}
	c, ok := s.Newest()
	if !ok {
		c.Step = 0
	}
	if c.Step == NoStep {
		if c.Step, err = stepIn(c.Path); err != nil {
			return err
		}
	}
	if c.Step < announced {
		return fmt.Errorf("lost: step %d was announced, the newest is %d", announced, c.Step)
	}
	if !ok || announced == 0 { // what the first one should have, only the program knows
		return nil
	}
	for name, want := range sv.files(int(c.Step)) {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			return fmt.Errorf("torn: %s of step %d counts: %v", name, c.Step, err)
		}
	}
	return nil
}

// live has a program save a few times, and marks on the disk what is announced. An
// operation that fails is the program's or the store's; both continue.
func (sv *saving) live(t *testing.T, dir string, disk atomicfile.FS, marks *faultfs.FS) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := New(root, sv.pattern, Options{FS: disk, Retention: []retention.Policy{retention.Last(1)}})
	for step := 1; step <= 3; step++ {
		failed := sv.save(disk, dir, step) != nil // then the program has ended
		for name := range sv.files(step) {
			if failed {
				break
			}
			at := time.Unix(int64(1_000_000+step), 0) // saves come faster here than clocks tick
			os.Chtimes(filepath.Join(dir, name), at, at)
		}
		added, _ := s.Refresh(true)
		if len(added) > 0 {
			marks.Mark(int64(step))
		}
		s.Rotate() // again after the next one
		if failed {
			for _, c := range s.NewestDamaged() {
				s.Quarantine(t.Context(), c, time.Unix(int64(step), 0))
			}
		}
	}
}

// crashes goes through what crashes after each operation may leave, and returns how
// many different states there were, and what is wrong with the bad ones.
func (sv *saving) crashes(t *testing.T, over func(atomicfile.FS) atomicfile.FS) (states int, bad []error) {
	dir := sessiontest.MemoryDir(t)
	marks := faultfs.New(0)
	sv.live(t, dir, over(marks), marks)
	if marks.Ops() == 0 {
		t.Fatal("nothing was done")
	}
	disk, tree, rnd := faultfs.NewDisk(dir, faultfs.State{}), faultfs.NewTree(dir), rand.New(rand.NewPCG(3, 4))
	seen := map[[32]byte]bool{}
	for n := range marks.Replay(disk) {
		for state := range disk.States(rnd, 2) {
			if d := digest(state); seen[d] {
				continue
			} else {
				seen[d] = true
			}
			if err := tree.LayOut(state); err != nil {
				t.Fatal(err)
			}
			tree.Forget() // the next run works in it
			if err := sv.judge(dir, state.Marked); err != nil {
				bad = append(bad, fmt.Errorf("%s, operation %d, %s: %w", sv.name, n, state.What, err))
			}
		}
	}
	return len(seen), bad
}

func digest(s faultfs.State) [32]byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if strings.HasPrefix(name, "trainerd.manifests") {
			fmt.Fprintf(&b, "%s %d\n", name, len(s.Files[name])) // it has times
			continue
		}
		fmt.Fprintf(&b, "%s %x\n", name, s.Files[name])
	}
	fmt.Fprint(&b, s.Dirs, s.Marked)
	return sha256.Sum256(b.Bytes())
}

// TestCrashStatesOfPrograms has no crash lose a checkpoint that was announced, or
// have one count that is not whole.
func TestCrashStatesOfPrograms(t *testing.T) {
	t.Parallel()
	total := 0
	for _, sv := range savings {
		states, bad := sv.crashes(t, func(f atomicfile.FS) atomicfile.FS { return f })
		total += states
		if len(bad) > 0 {
			t.Errorf("%s: %d of %d states are bad, as %v", sv.name, len(bad), states, bad[0])
		}
	}
	t.Logf("%d states", total)
	if total < 300 {
		t.Errorf("only %d different states", total)
	}
}

// TestCrashStatesOfProgramsFind has the search find a store that does not sync.
func TestCrashStatesOfProgramsFind(t *testing.T) {
	t.Parallel()
	for _, mistake := range []faultfs.Mistake{faultfs.NoSync, faultfs.NoDirSync} {
		for _, sv := range []saving{savings[0], savings[3]} {
			if _, bad := sv.crashes(t, mistake.Over); len(bad) == 0 {
				t.Errorf("%s: no state shows the mistake: %s", sv.name, mistake)
			}
		}
	}
}

// TestFailingOperationsOfPrograms fails each operation once, of the program and of
// the store: what was announced stays, and the save after it counts.
func TestFailingOperationsOfPrograms(t *testing.T) {
	t.Parallel()
	for _, sv := range savings {
		dir := sessiontest.MemoryDir(t)
		whole := faultfs.New(0)
		sv.live(t, dir, whole, whole)
		for n := 1; n <= whole.Ops(); n++ {
			cause := []error{syscall.ENOSPC, syscall.EIO}[n%2]
			dir := sessiontest.MemoryDir(t)
			disk := faultfs.NewFault(faultfs.Fault{At: n, Err: cause})
			sv.live(t, dir, disk, disk)
			announced := faultfs.NewDisk(dir, faultfs.State{})
			for range disk.Replay(announced) {
			}
			if err := sv.judge(dir, announced.Marked()); err != nil {
				t.Errorf("%s: %v at %s: %v", sv.name, cause, disk.Failed(), err)
			}
			if announced.Marked() < 2 {
				t.Errorf("%s: %v at %s: only step %d was announced", sv.name, cause, disk.Failed(), announced.Marked())
			}
		}
	}
}
