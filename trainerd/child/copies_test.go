//go:build unix

package child

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestCopyOfOverwritten has programs that save to one name again and again, and are
// killed in a save: they continue from the save before.
func TestCopyOfOverwritten(t *testing.T) {
	for _, files := range [][]string{{"last.safetensors"}, {"out/last/model.safetensors", "out/last/optim/a.safetensors"}} {
		dir := t.TempDir()
		pattern := "last*"
		if len(files) > 1 {
			pattern = "out/last"
		}
		write := func(text string) {
			for _, name := range files {
				writeFile(t, filepath.Join(dir, name), text)
			}
		}
		r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}}
		for life := 1; life <= 3; life++ {
			r.store = openShelf(t, dir, pattern)
			if bad := r.store.readRecords(); bad != nil {
				t.Fatal(bad)
			}
			r.store.refresh(true)
			if err := r.store.sweep(); err != nil {
				t.Fatal(err)
			}
			r.quarantineDamaged(t.Context())
			c, ok := r.store.newest(noCeiling)
			if ok != (life > 1) {
				t.Fatalf("life %d begins with %v, %v", life, c, ok)
			}
			for _, name := range files {
				if got, err := os.ReadFile(filepath.Join(dir, name)); life > 1 && (err != nil || string(got) != tensorsOf(10*life-10)) {
					t.Errorf("life %d: %s is not that of the save before: %v", life, name, err)
				}
			}
			for save := 1; save <= 2; save++ { // the second replaces the copy of the first
				write(tensorsOf(10*life - 10*(2-save)))
				if added, bad := r.store.refresh(true); len(added) != 1 || bad != nil {
					t.Fatalf("life %d: added %v, bad %v", life, added, bad)
				}
			}
			if copies, err := os.ReadDir(filepath.Join(dir, copiesDir)); err != nil || len(copies) != 1 {
				t.Errorf("life %d: copies %v, %v", life, copies, err)
			}
			write(tensorsOf(99)[:100])
		}
	}
}

// TestNoCopyWithSteps has a program whose checkpoints have steps: none is copied.
func TestNoCopyWithSteps(t *testing.T) {
	dir := logdirOf(t, "last.pt", "ckpt-1.pt")
	s := openShelf(t, dir, "*.pt")
	if added, _ := s.refresh(true); len(added) != 2 {
		t.Fatal(added)
	}
	if records, _ := manifest.Records(dir); len(records) != 2 || records[0].Copy != "" || records[1].Copy != "" {
		t.Errorf("records %+v", records)
	}
}

// TestCopyOfOneThatIsGone has a program that removes its only checkpoint before it
// renames the next, and is killed in between. One that has ended well may have done
// without it.
func TestCopyOfOneThatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		end  string
		dies bool // this process, too
		want bool
	}{
		"killed":             {"kill 9", false, true},
		"ended, begun again": {"exit 0", false, false},
		"all were killed":    {"exit 0", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, "")
			sv.Checkpoints = "last*"
			script := "write last;steps 1 3;await " + manifest.RecordName("last", NoStep) + ";remove last;" + tc.end
			sv.Env = []string{"CHILD_SCRIPT=" + script + "|list last*"}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.dies {
				writeFile(t, filepath.Join(sv.Logdir, logdir.LockFile), `{"host":"a","pid":1}`)
			}
			if !tc.want || tc.dies {
				sv.Env = []string{"CHILD_SCRIPT=list last*"}
				if _, err := sv.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Contains(out.String(), "found last"); got != tc.want {
				t.Errorf("the next start has it: %v, want %v\n%s", got, tc.want, out)
			}
		})
	}
}

// TestCopyOfOneThatChanges has a program that overwrites its checkpoint while that is
// being verified: what is known of it names the copy that there is.
func TestCopyOfOneThatChanges(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "last.safetensors")
	s := openShelf(t, dir, "last*")
	for save := range 3 {
		writeFile(t, name, tensorsOf(10+save))
		verdicts := s.verify(t.Context(), s.candidates(true))
		if save == 1 {
			writeFile(t, name, tensorsOf(99)[:100+save])
		}
		s.accept(verdicts)
		for _, err := range s.unrecorded {
			t.Errorf("save %d: %v", save, err)
		}
	}
	for k, r := range s.records {
		if _, err := os.Stat(filepath.Join(dir, r.Copy)); err != nil {
			t.Errorf("the record of %v names a copy that is not there: %v", k, err)
		}
	}
}
