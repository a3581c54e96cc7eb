//go:build unix

package found

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestIntact has what a program may leave: only where all of it is intact, a start may come before it is durable.
func TestIntact(t *testing.T) {
	whole := childtest.TensorsOf(2)
	for what, tc := range map[string]struct {
		pattern string
		saves   map[string]string // next to ckpt-1.safetensors, which counts
		removes string
		ok      bool
	}{
		"nothing new":             {pattern: "ckpt-*", ok: true},
		"a file":                  {pattern: "ckpt-*", saves: map[string]string{"ckpt-2.safetensors": whole}, ok: true},
		"one that is cut":         {pattern: "ckpt-*", saves: map[string]string{"ckpt-2.safetensors": whole[:99]}},
		"one that is empty":       {pattern: "ckpt-*", saves: map[string]string{"ckpt-2.safetensors": ""}},
		"the older one is cut":    {pattern: "ckpt-*", saves: map[string]string{"ckpt-2.safetensors": whole[:99], "ckpt-3.safetensors": whole}},
		"a temporary name":        {pattern: "ckpt-*", saves: map[string]string{"ckpt-2/a.safetensors": whole, "ckpt-2/b.tmp": whole}},
		"the first folder":        {pattern: "*-*", saves: map[string]string{"folder-2/a.bin": whole}},
		"one part of two":         {pattern: "{ckpt,optim}-*", saves: map[string]string{"ckpt-2.safetensors": whole}},
		"the one before is gone":  {pattern: "ckpt-*", removes: "ckpt-1.safetensors", saves: map[string]string{"ckpt-2.safetensors": whole}, ok: true},
		"the only one is changed": {pattern: "ckpt-1.*", saves: map[string]string{"ckpt-1.safetensors": whole}, ok: true},
	} {
		dir := t.TempDir()
		s := openStore(t, dir, tc.pattern)
		s.opts.IsPast = func(*Checkpoint) bool { return false }
		childtest.Write(t, filepath.Join(dir, "ckpt-1.safetensors"), childtest.TensorsOf(1))
		if tc.pattern[0] == '{' {
			childtest.Write(t, filepath.Join(dir, "optim-1.safetensors"), childtest.TensorsOf(1))
		}
		s.Refresh(true)
		if len(s.known) != 1 {
			t.Fatalf("%s: known %v", what, s.known)
		}
		if tc.removes != "" {
			childtest.Must(t, os.Remove(filepath.Join(dir, tc.removes)))
		}
		for name, text := range tc.saves {
			childtest.Write(t, filepath.Join(dir, name), text)
		}
		s.disk = syncDisk{FS: s.disk, file: errors.New("a sync"), dir: errors.New("a sync")}
		all, ok := s.Intact(t.Context())
		want := 0
		if tc.ok {
			want = len(tc.saves)
		}
		if ok != tc.ok || len(all) != want || len(s.Unverified(all)) != want {
			t.Errorf("%s: Intact = %v, %v", what, all, ok)
		}
		if len(all) > 0 && (s.isKnown(all[0].key()) || !all[0].untried) {
			t.Errorf("%s: it counts", what)
		}
	}
}

// TestIntactOfParts has a folder of two files, and one is changed or gone.
func TestIntactOfParts(t *testing.T) {
	for what, tc := range map[string]struct {
		change func(file string) error
		ok     bool
	}{
		"as it was": {func(string) error { return nil }, true},
		"changed":   {func(file string) error { return os.WriteFile(file, []byte("others"), 0o666) }, true},
		"gone":      {os.Remove, false},
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "ckpt-1", "a.bin"), "weights")
		childtest.Write(t, filepath.Join(dir, "ckpt-1", "b.bin"), "weights")
		s := openStore(t, dir, "ckpt-*")
		s.opts.IsPast = func(*Checkpoint) bool { return true }
		s.Refresh(true)
		if len(s.known) != 1 {
			t.Fatalf("%s: known %v", what, s.known)
		}
		childtest.Must(t, tc.change(filepath.Join(dir, "ckpt-1", "b.bin")))
		if all, ok := s.Intact(t.Context()); ok != tc.ok {
			t.Errorf("%s: Intact = %v, %v", what, all, ok)
		}
	}
}

// TestUnverified has what was found out about checkpoints since it was seen that they are there.
func TestUnverified(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "ckpt-*")
	childtest.Write(t, filepath.Join(dir, "ckpt-1.safetensors"), childtest.TensorsOf(1))
	childtest.Write(t, filepath.Join(dir, "ckpt-2.safetensors"), childtest.TensorsOf(2)[:99])
	all := s.Candidates(true)
	if got := s.Unverified(all); len(got) != 2 {
		t.Errorf("before: %v", got)
	}
	s.Accept(s.Verify(t.Context(), all))
	if got := s.Unverified(all); len(got) != 0 {
		t.Errorf("after one was verified and one refused: %v", got)
	}
}

// TestIntactOfOverwritten has the only checkpoint of a program, and a copy of it: while it is damaged
// or gone, a start waits for the copy.
func TestIntactOfOverwritten(t *testing.T) {
	for what, tc := range map[string]struct {
		text string // "" for none
		ok   bool
	}{"overwritten": {childtest.TensorsOf(2), true}, "damaged": {childtest.TensorsOf(2)[:99], false}, "gone": {"", false}} {
		dir := t.TempDir()
		name := filepath.Join(dir, "last.safetensors")
		childtest.Write(t, name, childtest.TensorsOf(1))
		s := openStore(t, dir, "last*")
		s.Refresh(true)
		childtest.Must(t, os.Remove(name))
		if tc.text != "" {
			childtest.Write(t, name, tc.text)
		}
		if all, ok := s.Intact(t.Context()); ok != tc.ok || len(all) > 0 != tc.ok {
			t.Errorf("%s: Intact = %v, %v", what, all, ok)
		}
	}
}
