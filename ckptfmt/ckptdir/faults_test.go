package ckptdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
)

// kinds are the forms of checkpoints; each saves one under a prefix.
var kinds = map[string]func(t *testing.T, prefix string){
	"V2": func(t *testing.T, prefix string) {
		saveCheckpoint(t, prefix)
		writeFile(t, layout.MetaName(prefix), "meta")
		if err := manifest.Write(t.Context(), prefix, &manifest.Manifest{}, nil); err != nil {
			t.Fatal(err)
		}
	},
	"V2 in three": func(t *testing.T, prefix string) {
		if err := saveParts(nil, prefix, StepOf(prefix), 3); err != nil {
			t.Fatal(err)
		}
	},
	"V1": func(t *testing.T, prefix string) {
		w, err := ckptfmt.CreateV1(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := errors.Join(w.Add("a", ckptfmt.Scalar(int64(1))), w.Finish()); err != nil {
			t.Fatal(err)
		}
		writeFile(t, layout.MetaName(prefix), "meta")
	},
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// twoOf makes a directory with two checkpoints of a kind, the newer the current.
func twoOf(t *testing.T, kind string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for step := 1; step <= 2; step++ {
		prefix := filepath.Join(dir, fmt.Sprint("m-", step))
		kinds[kind](t, prefix)
		state := &tfpb.CheckpointState{ModelCheckpointPath: prefix, AllModelCheckpointPaths: []string{filepath.Join(dir, "m-1")}}
		if err := UpdateState(dir, state, &StateOptions{RelativePaths: true}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A removal that is killed after any of its operations leaves a state file that
// leads to an intact checkpoint, and no checkpoint that lacks a part.
func TestRemoveKilled(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := twoOf(t, kind)
				fsys := faultfs.NewFault(faultfs.Fault{At: n, Kill: true})
				err := Remove(filepath.Join(dir, "m-2"), &ckptfmt.FileOptions{FS: fsys})
				if fsys.Failed() == "" {
					if err != nil || n < 6 {
						t.Errorf("%d operations, %v", n-1, err)
					}
					return
				}
				if !errors.Is(err, faultfs.ErrKilled) {
					t.Errorf("%s: %v", fsys.Failed(), err)
				}
				checkIntact(t, fsys.Failed(), dir)
			}
		})
	}
}

func checkIntact(t *testing.T, what, dir string) {
	t.Helper()
	list, err := List(dir)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %d checkpoints, %v", what, len(list), err)
	}
	for _, c := range list {
		if err := verifyBundle(t, c.Prefix); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if latest, err := LatestCheckpoint(dir, nil); err != nil {
		t.Errorf("%s: current checkpoint %s: %v", what, latest, err)
	}
}

// A removal that failed is finished by the next one, without a trace.
func TestRemoveAgain(t *testing.T) {
	for kind := range kinds {
		for n := 1; ; n++ {
			dir := twoOf(t, kind)
			fsys := faultfs.New(n)
			prefix := filepath.Join(dir, "m-1")
			err := Remove(prefix, &ckptfmt.FileOptions{FS: fsys})
			if fsys.Failed() == "" {
				break
			}
			if !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("%s, %s: %v", kind, fsys.Failed(), err)
			}
			if _, err := Find(prefix); err == nil {
				err = Remove(prefix, nil)
				if err != nil {
					t.Errorf("%s, %s: again: %v", kind, fsys.Failed(), err)
				}
			}
			if err := RemoveFiles(prefix, nil); err != nil {
				t.Errorf("%s, %s: what is left: %v", kind, fsys.Failed(), err)
			}
			if left := fileNames(t, dir); slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, "m-1") }) {
				t.Errorf("%s, %s: left %q", kind, fsys.Failed(), left)
			}
			checkIntact(t, fsys.Failed(), dir)
		}
	}
}

// The removal of the last checkpoint takes the state file along, durably, and
// says when it cannot.
func TestForgetTheLast(t *testing.T) {
	for n := 0; n <= 2; n++ { // none, remove, sync directory
		dir := t.TempDir()
		prefix := filepath.Join(dir, "m-1")
		saveCheckpoint(t, prefix)
		if err := UpdateState(dir, &tfpb.CheckpointState{ModelCheckpointPath: prefix}, nil); err != nil {
			t.Fatal(err)
		}
		fsys := faultfs.New(n)
		err := Forget(prefix, &ckptfmt.FileOptions{FS: fsys})
		if fsys.Ops() < n || errors.Is(err, faultfs.ErrInjected) != (n > 0) {
			t.Errorf("operation %d of %d: %v", n, fsys.Ops(), err)
		}
		if _, err := os.Stat(filepath.Join(dir, StateName)); errors.Is(err, fs.ErrNotExist) != (n != 1) {
			t.Errorf("operation %d: state file: %v", n, err)
		}
		if err := verifyBundle(t, prefix); err != nil {
			t.Errorf("the files are not those of Forget: %v", err)
		}
	}
}

// RemoveFiles removes what it can, but no data of an index that stays, and reports
// each failure.
func TestRemoveFilesFails(t *testing.T) {
	for n := 0; n <= 5; n++ { // four files, then the directory
		dir := emptyFiles(t, "m-1.data-00000-of-00001", "m-1.index", "m-1.meta", "m-1.manifest.json")
		fsys := faultfs.New(n)
		err := RemoveFiles(filepath.Join(dir, "m-1"), &ckptfmt.FileOptions{FS: fsys})
		want := 0
		if n >= 1 && n <= 4 {
			want = 1
		}
		if n == 3 { // the index
			want = 2
		}
		if left := fileNames(t, dir); errors.Is(err, faultfs.ErrInjected) != (n > 0) || len(left) != want {
			t.Errorf("operation %d: %v; left %q", n, err, left)
		}
	}
	if err := RemoveFiles(filepath.Join(t.TempDir(), "none", "m-1"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
	fsys := faultfs.New(1)
	if err := RemoveFiles(filepath.Join(t.TempDir(), "m-1"), &ckptfmt.FileOptions{FS: fsys}); err != nil || fsys.Ops() > 0 {
		t.Errorf("nothing to remove: %v, %d operations", err, fsys.Ops())
	}
}

// A file that another process removes first is not a failure.
func TestRemoveFilesOfTwo(t *testing.T) {
	dir := emptyFiles(t, "m-1.data-00000-of-00001", "m-1.index")
	first := &removedBefore{FS: faultfs.New(0)}
	if err := RemoveFiles(filepath.Join(dir, "m-1"), &ckptfmt.FileOptions{FS: first}); err != nil || len(fileNames(t, dir)) > 0 {
		t.Errorf("%v; left %q", err, fileNames(t, dir))
	}
	dir = emptyFiles(t, ".trainerd-0123456789abcdef.tmp")
	removed, err := SweepTemps(dir, 0, &ckptfmt.FileOptions{FS: first})
	if err != nil || len(removed) > 0 {
		t.Errorf("SweepTemps = %q, %v; it removed nothing itself", removed, err)
	}
	dir = twoOf(t, "V2")
	if err := Remove(filepath.Join(dir, "m-1"), &ckptfmt.FileOptions{FS: first}); err != nil {
		t.Errorf("Remove = %v", err)
	}
}

// removedBefore is a file system on which files are gone when they are to be
// removed.
type removedBefore struct{ *faultfs.FS }

func (r *removedBefore) Remove(name string) error {
	return errors.Join(os.Remove(name), r.FS.Remove(name))
}

// Everything reports that the directory does not exist.
func TestNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	prefix := filepath.Join(dir, "m-1")
	_, list := List(dir)
	_, check := Check(dir)
	_, find := Find(prefix)
	_, sweep := SweepTemps(dir, 0, nil)
	_, _, newest := NewestIntact(t.Context(), dir)
	for what, err := range map[string]error{
		"List": list, "Check": check, "Find": find, "SweepTemps": sweep, "NewestIntact": newest,
		"Remove": Remove(prefix, nil), "Select": Select(prefix, nil), "Move": Move(prefix, prefix+"0"),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want ErrNotExist", what, err)
		}
	}
	if err := Forget(prefix, nil); err != nil {
		t.Errorf("Forget = %v; there is no state file that names it", err)
	}
}

// A search that is cancelled says so, and does not call the rest damaged.
func TestNewestIntactCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, bad, err := NewestIntact(ctx, logdir(t)); !errors.Is(err, context.Canceled) || len(bad) > 0 || c.Prefix != "" {
		t.Errorf("%v, %v, %v", c, bad, err)
	}
}

// A checkpoint that cannot be read may be intact, so no older one is taken for
// the newest.
func TestNewestIntactUnreadable(t *testing.T) {
	dir := logdir(t)
	data := filepath.Join(dir, "model.ckpt-30.data-00000-of-00001")
	if err := errors.Join(os.Remove(data), os.Symlink(data, data)); err != nil {
		t.Skip(err)
	}
	c, bad, err := NewestIntact(t.Context(), dir)
	if !IsUnreadable(err) || !strings.Contains(fmt.Sprint(err), "model.ckpt-30 cannot be read") || len(bad) > 0 || c.Prefix != "" {
		t.Errorf("%v, %v, %v", c, bad, err)
	}
}

// SweepTemps names what it removed; a directory of parts that it cannot empty
// stays, and is reported.
func TestSweepTempsReports(t *testing.T) {
	part := "m-4_temp/part-00000-of-00001.index"
	dir := emptyFiles(t, ".trainerd-0123456789abcdef.tmp", "m-3.index.tempstate99", part)
	for n := 2; n <= 4; n++ { // the second file, the part, its directory
		fsys := faultfs.New(n)
		if _, err := SweepTemps(dir, 0, &ckptfmt.FileOptions{FS: fsys}); !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s: %v", fsys.Failed(), err)
		}
		dir = emptyFiles(t, ".trainerd-0123456789abcdef.tmp", "m-3.index.tempstate99", part)
	}
	removed, err := SweepTemps(dir, 0, nil)
	want := []string{".trainerd-0123456789abcdef.tmp", "m-3.index.tempstate99", "m-4_temp"}
	if err != nil || !slices.Equal(removed, want) || len(fileNames(t, dir)) > 0 {
		t.Errorf("removed %q, %v; left %q", removed, err, fileNames(t, dir))
	}
	dir = emptyFiles(t, part)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, part), old, old); err != nil {
		t.Fatal(err)
	}
	if removed, err := SweepTemps(dir, time.Minute, nil); err != nil || !slices.Equal(removed, []string{"m-4_temp"}) {
		t.Errorf("old parts: %q, %v", removed, err)
	}
}

// At every moment of a move, whatever a power cut leaves, the checkpoint that
// the state file names is intact, and so is the one that moves.
func TestMovePowerCut(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "logdir")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	fsys := faultfs.New(0)
	for step := int64(1); step <= 2; step++ {
		if err := saveStep(fsys, dir, step, 1); err != nil {
			t.Fatal(err)
		}
	}
	first := fsys.Ops()
	from, to := filepath.Join(dir, "model.ckpt-2"), filepath.Join(dir, "best-2")
	if err := move(from, to, fsys); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(t.TempDir(), "disk")
	states := 0
	for n := first; n <= fsys.Ops(); n++ {
		for what, err := range fsys.Crashes(n, root, disk) {
			if err != nil {
				t.Fatal(err)
			}
			states++
			if latestStep(t, filepath.Join(disk, "logdir")) != 2 {
				t.Errorf("%s: step 2 is lost", what)
			}
			list, err := List(filepath.Join(disk, "logdir"))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				if err := verifyBundle(t, c.Prefix); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
	if states < 20 {
		t.Errorf("only %d states", states)
	}
}

// A move that fails at any operation says so, and the checkpoint is there under
// the old name or the new one.
func TestMoveFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := twoOf(t, "V2")
		fsys := faultfs.New(n)
		err := move(filepath.Join(dir, "m-2"), filepath.Join(dir, "b-2"), fsys)
		if fsys.Failed() == "" {
			return
		}
		if !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s: %v", fsys.Failed(), err)
		}
		if latest, err := LatestCheckpoint(dir, nil); err != nil || !strings.HasSuffix(latest, "-2") {
			t.Errorf("%s: current: %s, %v", fsys.Failed(), latest, err)
		} else if err := verifyBundle(t, latest); err != nil {
			t.Errorf("%s: %v", fsys.Failed(), err)
		}
	}
}
