//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// naming is how a program gives its newest checkpoint a second name.
type naming struct {
	kind, pattern, file, name string // "#" is the step
	make                      func(t *testing.T, to, name string)
}

var namings = []naming{
	{"a file", "s_*", "s_#.safetensors", "latest", says("NAME\n")},
	{"JSON", "s_*", "s_#.safetensors", "latest.json", says(`{"path": "NAME"}`)},
	{"TensorFlow's state", "s_*", "s_#.safetensors", "checkpoint", writeState},
	{"a link", "s_*", "s_#.safetensors", "latest", linkTo},
	{"a link to a folder", "out/s_*", "out/s_#/a.safetensors", "out/latest", func(t *testing.T, to, name string) { linkTo(t, filepath.Dir(to), name) }},
	{"a hard link", "s_*", "s_#.safetensors", "latest", func(t *testing.T, to, name string) { childtest.Must(t, os.Link(to, name)) }},
}

func says(format string) func(t *testing.T, to, name string) {
	return func(t *testing.T, to, name string) {
		childtest.Write(t, name, strings.ReplaceAll(format, "NAME", filepath.Base(to)))
	}
}

// writeState writes the state of a Saver, which lists the older checkpoint too.
func writeState(t *testing.T, to, name string) {
	text := "model_checkpoint_path: \"NAME\"\n"
	if older := "s_10.safetensors"; slices.Contains(childtest.Below(t, filepath.Dir(to)), older) {
		text += "all_model_checkpoint_paths: \"" + older + "\"\n"
	}
	says(text)(t, to, name)
}

func linkTo(t *testing.T, to, name string) { childtest.Must(t, os.Symlink(filepath.Base(to), name)) }

// leadsTo returns what a second name leads to, "" where there is no such name.
func leadsTo(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	childtest.Must(t, err)
	if info.Mode().IsRegular() && info.Size() < 200 { // else it has weights
		said := regexp.MustCompile(`(?:s_\d+|last)\.\w+`).FindString(childtest.Read(t, name))
		name = filepath.Join(filepath.Dir(name), said)
	} else if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "a.safetensors")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestKilledWhileMovingAside has a kill at each operation of moving a damaged checkpoint aside
// that has a second name: at the next start the name leads to an intact checkpoint, or is gone
// where there is none, and nothing else is left or missing.
func TestKilledWhileMovingAside(t *testing.T) {
	for _, n := range namings {
		for _, left := range []string{"an older one", "nothing", "a copy"} {
			t.Run(n.kind+", "+left, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { n.killedAtEach(t, left) })
			})
		}
	}
}

func (n naming) killedAtEach(t *testing.T, left string) {
	of := func(step string) string { return strings.ReplaceAll(n.file, "#", step) }
	pattern, want := n.pattern, childtest.TensorsOf(10)
	if left == "a copy" {
		of = func(string) string { return strings.ReplaceAll(n.file, "s_#", "last") }
		pattern = strings.ReplaceAll(n.pattern, "s_*", "last*")
	}
	for at := 1; ; at++ {
		dir := t.TempDir()
		r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}}
		look := func(disk atomicfile.FS) {
			r.store = storeOn(t, disk, dir, pattern)
			if bad := r.store.ReadRecords(); bad != nil {
				t.Fatal(bad)
			}
			r.store.Refresh(true)
		}
		if left != "nothing" {
			childtest.Write(t, filepath.Join(dir, of("10")), want)
			look(nil)
		}
		childtest.Write(t, filepath.Join(dir, of("20")), childtest.TensorsOf(20)[:300])
		n.make(t, filepath.Join(dir, of("20")), filepath.Join(dir, n.name))
		swap := &childtest.Swappable{FS: atomicfile.OrOS(nil)}
		look(swap)
		disk := faultfs.NewFault(faultfs.Fault{At: at, Kill: true})
		swap.FS = disk
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r.quarantineDamaged(ctx)
		cancel()

		look(nil)
		r.bringBackGone(t.Context())
		childtest.Must(t, r.store.Sweep())
		r.quarantineDamaged(t.Context())
		got := leadsTo(t, filepath.Join(dir, n.name))
		if left == "nothing" && got != "" || left != "nothing" && got != want {
			t.Errorf("killed at %s: the name leads to %.80q", disk.Failed(), got)
		}
		files := childtest.Below(t, dir)
		if slices.ContainsFunc(files, func(name string) bool { return atomicfile.IsTemp(filepath.Base(name)) }) {
			t.Errorf("killed at %s: left are %v", disk.Failed(), files)
		}
		if c, ok := r.store.Newest(); ok != (left != "nothing") || ok && childtest.Read(t, filepath.Join(dir, of("10"))) != want {
			t.Errorf("killed at %s: the newest is %v, of %v", disk.Failed(), c, files)
		}
		if disk.Failed() == "" {
			if at < 6 {
				t.Errorf("only %d operations", at)
			}
			return
		}
	}
}

// TestMovedAsideOnBadDisk has each operation fail once of moving a damaged checkpoint aside: it
// is not there all the same when the program starts, and the copy of one that is overwritten is.
func TestMovedAsideOnBadDisk(t *testing.T) {
	for pattern, files := range map[string][]string{
		"s_*": {"s_20.safetensors"}, "{a,b}_*": {"a_20.safetensors", "b_20.safetensors"}, "last*": {"last.safetensors"}, "{last,more}*": {"last.safetensors", "more.safetensors"},
	} {
		t.Run(pattern, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { movedOnBadDisk(t, pattern, files) }) })
	}
}

func movedOnBadDisk(t *testing.T, pattern string, files []string) {
	overwritten := strings.HasPrefix(files[0], "last")
	for at := 1; ; at++ {
		dir := t.TempDir()
		swap := &childtest.Swappable{FS: atomicfile.OrOS(nil)}
		r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}, store: storeOn(t, swap, dir, pattern)}
		for _, text := range []string{childtest.TensorsOf(10), childtest.TensorsOf(20)[:300]} {
			for _, name := range files {
				if text != childtest.TensorsOf(10) || overwritten {
					childtest.Write(t, filepath.Join(dir, name), text)
				}
			}
			r.store.Refresh(true)
		}
		disk := faultfs.NewFault(faultfs.Fault{At: at, Err: syscall.EIO})
		swap.FS = disk
		r.quarantineDamaged(t.Context())
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if overwritten && string(text) != childtest.TensorsOf(10) || !overwritten && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("failed at %s: %s has %d bytes, %v", disk.Failed(), name, len(text), err)
			}
		}
		if disk.Failed() == "" {
			if at < 6 {
				t.Errorf("only %d operations", at)
			}
			return
		}
	}
}

// TestPartMovedAside has a disk that stops taking anything after it has moved one of two files of a damaged checkpoint,
// and works again a moment later: the other is moved then, too.
func TestPartMovedAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, begun, moved := t.TempDir(), time.Now(), 0
		disk := childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: dir, Fails: func(op, name string) bool {
			if op != "rename" {
				return false
			}
			moved++
			return moved > 1 && time.Since(begun) < firstBringBack
		}}
		r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}, store: storeOn(t, disk, dir, "ckpt-{a,b}_*")}
		for _, name := range []string{"ckpt-a_20.safetensors", "ckpt-b_20.safetensors"} {
			childtest.Write(t, filepath.Join(dir, name), childtest.TensorsOf(20)[:300])
		}
		r.store.Refresh(true)
		r.quarantineDamaged(t.Context())
		if left := checkpointsIn(t, dir); len(left) > 0 || moved < 3 {
			t.Errorf("left are %v after %d moves", left, moved)
		}
	})
}
