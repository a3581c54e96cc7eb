//go:build unix

package child

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

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
			script := "write last;steps 1 3;await " + manifest.RecordName("last", found.NoStep) + ";remove last;" + tc.end
			sv.Env = []string{"CHILD_SCRIPT=" + script + "|list last*"}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.dies {
				childtest.Write(t, filepath.Join(sv.Logdir, logdir.LockFile), `{"host":"a","pid":1}`)
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

// TestCopySurvivesItsReturn lets each operation fail, or be the last before a kill, of
// giving a program its checkpoint back: the copy is the only one that is intact, and the
// next start has it.
func TestCopySurvivesItsReturn(t *testing.T) {
	synctest.Test(t, copySurvivesItsReturn) // a disk that does not take it is asked again
}

func copySurvivesItsReturn(t *testing.T) {
	const pattern = "out/last.{json,safetensors}"
	files := []string{"out/last.json", "out/last.safetensors"}
	for _, kill := range []bool{false, true} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}}
			look := func(disk atomicfile.FS) {
				r.store = storeOn(t, disk, dir, pattern)
				if bad := r.store.ReadRecords(); bad != nil {
					t.Fatal(bad)
				}
				r.store.Refresh(true)
			}
			whole := atomicfile.NoSync(atomicfile.OrOS(nil))
			look(whole)
			for i, text := range []string{`{"step":1}`, childtest.TensorsOf(10)} {
				childtest.Write(t, filepath.Join(dir, files[i]), text)
				if err := os.Chtimes(filepath.Join(dir, files[i]), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			if added, bad := r.store.Refresh(true); len(added) != 1 || bad != nil {
				t.Fatalf("added %v, bad %v", added, bad)
			}
			childtest.Write(t, filepath.Join(dir, files[1]), childtest.TensorsOf(99)[:100])

			fsys := faultfs.NewFault(faultfs.Fault{At: n, Kill: kill})
			disk := &childtest.Swappable{FS: whole}
			look(disk)
			disk.FS = fsys
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			r.quarantineDamaged(ctx)
			cancel()
			failed := fsys.Failed()

			look(whole)
			r.bringBackGone(t.Context())
			if err := r.store.Sweep(); err != nil {
				t.Error(err)
			}
			r.quarantineDamaged(t.Context())
			got, err := os.ReadFile(filepath.Join(dir, files[1]))
			if c, ok := r.store.Newest(); !ok || err != nil || string(got) != childtest.TensorsOf(10) {
				t.Errorf("kill %v, %s: the next start has %v; %d bytes, %v", kill, failed, c, len(got), err)
			}
			if failed == "" {
				if n < 8 {
					t.Errorf("only %d operations", n)
				}
				break
			}
		}
	}
}
