//go:build unix

package found

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestLastIsNeverGone lets each operation of replacing it fail in turn: that is said, a file of
// the name is there at each moment, no half of another and nothing else is left over, and the
// next try succeeds.
func TestLastIsNeverGone(t *testing.T) {
	whole, cut := childtest.TensorsOf(10), childtest.TensorsOf(20)[:100]
	for n := 0; ; n++ {
		dir := t.TempDir()
		last := filepath.Join(dir, "last.safetensors")
		childtest.Write(t, filepath.Join(dir, "s-10.safetensors"), whole)
		childtest.Write(t, last, cut)
		s := openStore(t, dir, "*.safetensors")
		s.Refresh(true)
		from, _ := s.Newest()
		c, left := s.LatestStates(from)[0], n
		disk := s.disk
		s.disk = childtest.PickyDisk{FS: disk, Logdir: dir, Fails: func(string, string) bool {
			if _, err := os.Lstat(last); err != nil {
				t.Errorf("operation %d: %v", n-left, err)
			}
			left--
			return left == -1
		}}
		_, err := s.Replace(c, from, time.Now())
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if atomicfile.IsTemp(e.Name()) {
				t.Errorf("operation %d has failed: %v; it has left %s", n, err, e.Name())
			}
		}
		if left >= 0 {
			if err != nil || n < 5 {
				t.Errorf("after %d operations: %v", n-left, err)
			}
			return
		}
		if err == nil {
			t.Errorf("operation %d has failed, and nothing is said", n)
		}
		s.disk = disk
		if got := childtest.Read(t, last); got == cut {
			if _, err := s.Replace(s.LatestStates(from)[0], from, time.Now()); err != nil {
				t.Errorf("operation %d has failed; the next try: %v", n, err)
			}
		}
		if got := childtest.Read(t, last); got != whole {
			t.Errorf("operation %d has failed: then it has %d bytes", n, len(got))
		}
	}
}

// TestLasts has files next to a checkpoint: the newest state of a program has one of some names,
// is a regular file of the same kind, and nobody else's.
func TestLasts(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"s-10.safetensors", "last.safetensors", "last-v1.safetensors", "checkpoint_Latest.safetensors", "newest.safetensors",
		"lasting.safetensors", "last.pt", "last", "last-20.safetensors", "trainerd.last.safetensors", "latest.safetensors/w",
		"folder-10/w", "two-10.a", "two-10.b", "best.safetensors", "other/last.safetensors",
	} {
		childtest.Write(t, filepath.Join(dir, name), childtest.Tensors())
	}
	childtest.Must(t, os.Symlink("s-10.safetensors", filepath.Join(dir, "x-last.safetensors")))
	s := openStore(t, dir, "*")
	var got []string
	for _, c := range s.LatestStates(Checkpoint{Step: 10, files: []string{"s-10.safetensors"}}) {
		got = append(got, filepath.Base(c.Path))
	}
	if want := []string{"checkpoint_Latest.safetensors", "last-v1.safetensors", "last.safetensors", "newest.safetensors"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, c := range []Checkpoint{
		{Step: NoStep, files: []string{"best.safetensors"}},
		{Step: 10, files: []string{"two-10.a", "two-10.b"}},
		{Step: 10, files: []string{"folder-10"}},
		{Step: 10, files: []string{"gone-10.safetensors"}},
	} {
		if got := s.LatestStates(c); got != nil {
			t.Errorf("next to %v: %v", c.files, got)
		}
	}
}

// TestLastIsAnother has a pattern that means a program's newest state, too: what was known of
// it is not of the copy that takes its place, which counts once it is found again.
func TestLastIsAnother(t *testing.T) {
	for _, text := range []string{childtest.TensorsOf(20), childtest.TensorsOf(20)[:100]} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "s-10.safetensors"), childtest.TensorsOf(10))
		childtest.Write(t, filepath.Join(dir, "last.safetensors"), text)
		s := openStore(t, dir, "*.safetensors")
		s.Refresh(true)
		from := s.known[len(s.known)-1]
		if _, err := s.Replace(s.LatestStates(from)[0], from, time.Now()); err != nil {
			t.Fatal(err)
		}
		if bad := s.NewestDamaged(); len(bad) > 0 || len(s.Known()) != 1 {
			t.Errorf("damaged are %v, known %v", bad, s.Known())
		}
		if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
			t.Errorf("added %v, bad %v", added, bad)
		}
	}
}

// TestIsCut has a program's newest state in a form that does not say how long it is: it is cut if
// a scan has found so, and nothing has changed since. One that the store does not know is read.
func TestIsCut(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) (c Checkpoint) {
		childtest.Write(t, filepath.Join(dir, "last.bin"), text)
		return openStore(t, dir, "last.bin").find()[keyOf("last.bin", false)]
	}
	s := openStore(t, dir, "last.bin")
	check := func(what string, c Checkpoint, want bool) {
		t.Helper()
		if got := s.IsDamaged(t.Context(), c); got != want {
			t.Errorf("%s: it is cut: %v", what, got)
		}
	}
	check("not known", write("w"), false)
	check("not known, and empty", write(""), true)
	for i := range knownSizes {
		c := write(strings.Repeat("w", 100+i))
		s.Refresh(true)
		check("known", c, false)
	}
	check("known, and empty since", write(""), true)
	cut := write("www")
	s.Refresh(true)
	check("refused", cut, true)
	check("written again since", write(strings.Repeat("w", 110)), false)
	c := write(strings.Repeat("w", 90))
	s.refused[c.key()] = Rejected{Checkpoint: c, err: &notDurableError{syscall.EIO}}
	check("not durable", c, false)

	name := filepath.Join(dir, "last.safetensors")
	childtest.Write(t, name, childtest.Tensors()[:40])
	c = openStore(t, dir, "*.safetensors").find()[keyOf("last.safetensors", false)]
	check("not known, and cut", c, true)
	ended, end := context.WithCancel(t.Context())
	if end(); s.IsDamaged(ended, c) {
		t.Error("nobody has read it, and it is cut")
	}
}

// TestReplacedIsPutBack has a newest state replaced by a copy of a checkpoint, and put back: it is as it was.
func TestReplacedIsPutBack(t *testing.T) {
	dir := t.TempDir()
	last, state := filepath.Join(dir, "last.bin"), "the newest state"
	childtest.Write(t, filepath.Join(dir, "s-10.bin"), "weights of step 10")
	childtest.Write(t, last, state)
	s := openStore(t, dir, "*.bin")
	s.Refresh(true)
	from, _ := s.Newest()
	m, err := s.Replace(s.LatestStates(from)[0], from, time.Now())
	if got := childtest.Read(t, last); err != nil || got != "weights of step 10" {
		t.Fatalf("replaced: %q, %v", got, err)
	}
	back, err := s.PutBack(m)
	if got := childtest.Read(t, last); err != nil || !back || got != state {
		t.Errorf("put back: %q, %v, %v", got, back, err)
	}
}
