//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestAlternativesThatNeverCome has a pattern whose one half means nothing: two
// checkpoints in a row show that the program does without it.
func TestAlternativesThatNeverCome(t *testing.T) {
	dir := childtest.Logdir(t, "a_1")
	s := openStore(t, dir, "{a,b}_*")
	if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	childtest.Write(t, filepath.Join(dir, "a_2"), "weights")
	if added, bad := s.Refresh(true); len(added) != 2 || len(bad) > 0 {
		t.Errorf("added %v, bad %v", added, bad)
	}
	if c, ok := s.Newest(); !ok || c.Step != 2 {
		t.Errorf("the newest is %v", c)
	}
}

// TestRanksThatAreMissing has files of two processes, one of which was killed before
// it had saved; then fewer processes, which two checkpoints in a row show.
func TestRanksThatAreMissing(t *testing.T) {
	dir := childtest.Logdir(t, "c_5_rank0", "c_5_rank1")
	s := openStore(t, dir, "c_*")
	s.Refresh(true)
	childtest.Write(t, filepath.Join(dir, "c_10_rank0"), "weights")
	for range 9 {
		if added, bad := s.Refresh(false); added != nil || bad != nil { // the other is about to come
			t.Fatalf("while it is written: added %v, bad %v", added, bad)
		}
	}
	added, bad := s.Refresh(true)
	if added != nil || len(bad) != 1 || !strings.Contains(bad[0].Error(), "c_#_rank1") {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	childtest.Write(t, filepath.Join(dir, "c_15_rank0"), "weights")
	s.Refresh(true)
	if c, ok := s.Newest(); !ok || c.Step != 15 {
		t.Errorf("the newest is %v", c)
	}
}

// TestParts has what the alternatives of a pattern mean: files, also of bundles.
func TestParts(t *testing.T) {
	if got := partsOf("./a//{b,c}-*"); !slices.Equal(got, []string{"a/b-*", "a/c-*"}) {
		t.Errorf("alternatives %q", got)
	}
	for name, want := range map[string]bool{"m-1.index": true, "m-1.data-00000-of-00001": true, "m-1": true, "m-1.txt": false, "n-1.index": false} {
		if got := isPart("m-?", name); got != want {
			t.Errorf("m-? means %s: %v", name, got)
		}
	}
	if !isPart("m-?.index", "m-1.index") {
		t.Error("a pattern of indexes means none")
	}
}

// TestSeveralFilesOfAStep has checkpoints of three files: they count, stay and go
// together, and one that lacks a file was not finished.
func TestSeveralFilesOfAStep(t *testing.T) {
	const pattern = "{weights_*.safetensors,optim_*.safetensors,meta_*.json}"
	dir, tensors := t.TempDir(), childtest.Tensors()
	write := func(names ...string) {
		t.Helper()
		for _, name := range names {
			text := tensors
			if strings.HasSuffix(name, ".json") {
				text = "{}"
			}
			childtest.Write(t, filepath.Join(dir, name), text)
		}
	}
	write("weights_5.safetensors", "sample_5.json")
	s := openStore(t, dir, pattern, retention.Last(1))
	for range 9 {
		if added, bad := s.Refresh(false); added != nil || bad != nil { // the others are about to come
			t.Fatalf("while it is written: added %v, bad %v", added, bad)
		}
	}
	write("optim_5.safetensors", "meta_5.json", "weights_10.safetensors", "optim_10.safetensors")
	added, bad := s.Refresh(true)
	if !slices.Equal(steps(added), []int64{5}) || len(bad) != 1 || !strings.Contains(bad[0].Error(), "meta_*.json") {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	if want := filepath.Join(dir, "weights_5.safetensors"); added[0].Path != want || added[0].Size != int64(2*len(tensors)+2) {
		t.Errorf("it is %s of %d bytes, want %s of three files", added[0].Path, added[0].Size, want)
	}
	if deleted, err := s.Rotate(); deleted != nil || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	clearDamaged(t.Context(), s)
	if left := childtest.Below(t, dir); !slices.Contains(left, "sample_5.json") || slices.Contains(left, "optim_10.safetensors") || slices.Contains(left, "weights_10.safetensors") {
		t.Errorf("after the quarantine: %v", left)
	}
	write("weights_15.safetensors", "optim_15.safetensors", "meta_15.json")
	if added, bad := s.Refresh(true); !slices.Equal(steps(added), []int64{15}) || bad != nil {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	if deleted, err := s.Rotate(); !slices.Equal(steps(deleted), []int64{5}) || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	for _, name := range childtest.Below(t, dir) {
		if strings.Contains(name, "_5.") && name != "sample_5.json" {
			t.Errorf("%s has stayed", name)
		}
	}
}

// TestFilesThatAreReplacedTogether has a program that overwrites two files, and was
// killed between them: both are intact, and not of one save.
func TestFilesThatAreReplacedTogether(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1_700_000_000, 0)
	write := func(name, text string) {
		t.Helper()
		childtest.Write(t, filepath.Join(dir, name), text)
		if at = at.Add(time.Second); os.Chtimes(filepath.Join(dir, name), at, at) != nil {
			t.Fatal("cannot set the time")
		}
	}
	s := openStore(t, dir, "{w,optim}.json")
	write("w.json", "[1]")
	write("optim.json", "[1]")
	if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	write("w.json", "[2]")
	write("optim.json", "[2]")
	if added, bad := s.Refresh(true); len(added) != 1 || bad != nil || added[0].Path != filepath.Join(dir, "w.json") {
		t.Fatalf("a whole save: added %v, bad %v", added, bad)
	}
	if added, bad := openStore(t, dir, "{w,optim}.json").Refresh(true); len(added) != 1 || bad != nil {
		t.Fatalf("the next run: added %v, bad %v", added, bad)
	}
	info, err := os.Stat(filepath.Join(dir, "w.json"))
	if err != nil {
		t.Fatal(err)
	}
	write("w.json", "[3,3]")
	if err := os.Chtimes(filepath.Join(dir, "w.json"), time.Time{}, info.ModTime()); err != nil { // a clock may be coarse
		t.Fatal(err)
	}
	added, bad := s.Refresh(true)
	if added != nil || len(bad) != 1 {
		t.Fatalf("half a save: added %v, bad %v", added, bad)
	}
	clearDamaged(t.Context(), s)
	for _, name := range []string{"w.json", "optim.json"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "[2]" {
			t.Errorf("%s has %q, %v; want the one of the save before", name, b, err)
		}
	}
}

// TestHalfReplaced has three files that one save writes, the last of them after the others, and
// which of them are written again: it is half a save only if the last one is still that of the
// save before, as far as times tell.
func TestHalfReplaced(t *testing.T) {
	for _, tc := range []struct {
		again  string
		atOnce bool // in the save before, by a coarse clock
		half   bool
	}{
		{again: "a.json", half: true},
		{again: "a.json b/w.json", half: true},
		{again: "a.json b/w.json c.json"},
		{again: "c.json"},
		{again: "b/more.json"}, // which no save has had
		{again: "a.json", atOnce: true},
	} {
		dir := t.TempDir()
		at := time.Unix(1_700_000_000, 0)
		write := func(name, text string) {
			for childtest.Write(t, filepath.Join(dir, name), text); name != "."; name = filepath.Dir(name) {
				childtest.Must(t, os.Chtimes(filepath.Join(dir, name), at, at))
			}
		}
		for _, name := range []string{"a.json", "b/w.json", "c.json"} {
			write(name, "[1]")
			if !tc.atOnce {
				at = at.Add(time.Second)
			}
		}
		s := openStore(t, dir, "{a.json,b,c.json}")
		if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
			t.Fatalf("added %v, bad %v", added, bad)
		}
		at = at.Add(time.Hour)
		for name := range strings.FieldsSeq(tc.again) {
			write(name, "[2]")
		}
		added, bad := s.Refresh(true)
		if len(bad) == 1 != tc.half || len(added) == 1 == tc.half {
			t.Errorf("%+v: added %v, bad %v", tc, added, bad)
		}
	}
}

// TestNameOfParts has the files of a checkpoint begin with what is its name, in whatever order
// the pattern means them.
func TestNameOfParts(t *testing.T) {
	dir := childtest.Logdir(t, "s_5.json", "s_5.npz", "w-7.a", "o-7.a")
	for pattern, want := range map[string]string{"s_*.{npz,json}": "s_5", "{w,o}-*.a": "w-7.a"} {
		for _, c := range openStore(t, dir, pattern).find() {
			if got := filepath.Base(c.Path); got != want {
				t.Errorf("%s: it is named %s, want %s", pattern, got, want)
			}
		}
	}
}
