package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// withFiles makes files in a new directory, those of V1 with the end of a table.
func withFiles(t *testing.T, names ...string) string {
	t.Helper()
	dir := sessiontest.MemoryDir(t)
	for _, name := range names {
		content := []byte("no checkpoint")
		if v1ShardPattern().MatchString(name) {
			content = binary.LittleEndian.AppendUint64(content, sstable.Magic)
		}
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, name), content, 0o666))
	}
	return dir
}

// What is removed after a kill, and what is not: whatever may be a checkpoint, is
// pinned, is of another model, or is looked after.
func TestRemoveLeftovers(t *testing.T) {
	const v1, v1b = "-00000-of-00002", "-00001-of-00002"
	const data, data2 = ".data-00000-of-00001", ".data-00001-of-00002"
	for name, tt := range map[string]struct {
		files    []string
		kept     []string // prefixes in the rotation
		last     string
		pending  []string // prefixes still to be deleted
		basename string
		gone     []string
	}{
		"data without an index":              {files: []string{"m-3" + data}, gone: []string{"m-3" + data}},
		"data of one shard of two":           {files: []string{"m-3" + data2}, gone: []string{"m-3" + data2}},
		"with a manifest and a graph":        {files: []string{"m-3" + data, "m-3.meta", "m-3.manifest.json"}, gone: []string{"m-3" + data, "m-3.manifest.json", "m-3.meta"}},
		"a checkpoint":                       {files: []string{"m-3" + data, "m-3.index"}},
		"of another model":                   {files: []string{"n-3" + data, "m-3-4" + data, "mm-3" + data}},
		"pinned":                             {files: []string{"m-3" + data, "m-3.pin"}},
		"pinned, and kept when overwritten":  {files: []string{"m-3.previous" + data, "m-3.previous.index", "m-3.pin"}},
		"pinned, kept until it was whole":    {files: []string{"m-3.previous" + data, "m-3.previous.index", "m-3" + data, "m-3.index", "m-3.pin"}, gone: []string{"m-3.previous" + data, "m-3.previous.index"}},
		"looked after":                       {files: []string{"m-3" + data}, kept: []string{"m-2", "m-3"}},
		"restored":                           {files: []string{"m-3" + data}, last: "m-3"},
		"to be deleted":                      {files: []string{"m-3" + data}, pending: []string{"m-1", "m-3"}},
		"kept until the next one was whole":  {files: []string{"m-3.previous" + data, "m-3.previous.index", "m-3" + data, "m-3.index"}, gone: []string{"m-3.previous" + data, "m-3.previous.index"}},
		"kept, the next one is not whole":    {files: []string{"m-3.previous" + data, "m-3.previous.index"}, kept: []string{"m-3"}},
		"kept, and nobody looks after it":    {files: []string{"m-3.previous" + data, "m-3.previous.index"}, gone: []string{"m-3.previous" + data, "m-3.previous.index"}},
		"without a step":                     {files: []string{"m" + data}, gone: []string{"m" + data}},
		"V1, one shard of two":               {files: []string{"m-3" + v1}, gone: []string{"m-3" + v1}},
		"V1, the other shard of two":         {files: []string{"m-3" + v1b}, gone: []string{"m-3" + v1b}},
		"V1, all shards":                     {files: []string{"m-3" + v1, "m-3" + v1b}},
		"V1, pinned by its short name":       {files: []string{"m-3" + v1, "m-3.pin"}},
		"V1, pinned, kept when overwritten":  {files: []string{"m-3.previous" + v1, "m-3.previous" + v1b, "m-3.pin"}},
		"V1, kept until the next was whole":  {files: []string{"m-3.previous" + v1, "m-3.previous" + v1b, "m-3" + v1, "m-3" + v1b}, gone: []string{"m-3.previous" + v1, "m-3.previous" + v1b}},
		"V1, kept, the next one is not":      {files: []string{"m-3.previous" + v1, "m-3.previous" + v1b}, kept: []string{"m-3-?????-of-00002"}},
		"V1, looked after":                   {files: []string{"m-3" + v1}, kept: []string{"m-3-?????-of-00002"}},
		"something else":                     {files: []string{"events.out.tfevents.1.host", "m-3.data-0000-of-0001", "m-3.data-00000-of-00001x", "m-3-0000-of-0002", "m-3.data-00000-of-00001.tempstate1"}},
		"two, one of them a checkpoint":      {files: []string{"m-3" + data, "m-4" + data, "m-4.index"}, gone: []string{"m-3" + data}},
		"of another name that was asked for": {files: []string{"m-3" + data, "n-3" + data}, basename: "n", gone: []string{"n-3" + data}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := withFiles(t, tt.files...)
			s := new(Saver)
			for _, p := range tt.kept {
				s.kept = append(s.kept, stored{prefix: filepath.Join(dir, p)})
			}
			for _, p := range tt.pending {
				s.pendingDelete = append(s.pendingDelete, stored{prefix: filepath.Join(dir, p)})
			}
			if tt.last != "" {
				s.last = filepath.Join(dir, tt.last)
			}
			if tt.basename == "" {
				tt.basename = "m"
			}
			log, lines := sessiontest.NewLog()
			s.Logger = log
			sessiontest.MustNoErr(t, s.RemoveLeftovers(dir, tt.basename))
			want := slices.DeleteFunc(slices.Clone(tt.files), func(name string) bool { return slices.Contains(tt.gone, name) })
			slices.Sort(want)
			left := sessiontest.Files(t, dir, "*")
			slices.Sort(left)
			if diff := cmp.Diff(left, want); diff != "" && len(left)+len(want) > 0 {
				t.Errorf("left (-got +want):\n%s", diff)
			}
			if said := lines.String() != ""; said != (len(tt.gone) > 0) {
				t.Errorf("log: %q", lines.String())
			}
		})
	}
}

// A directory, a link or a pipe with the name of a data file is not what a run has
// left.
func TestRemoveLeftoversTakesFilesOnly(t *testing.T) {
	dir := withFiles(t, "other")
	sessiontest.MustNoErr(t, os.Mkdir(filepath.Join(dir, "m-1.data-00000-of-00001"), 0o777))
	sessiontest.MustNoErr(t, os.Symlink("other", filepath.Join(dir, "m-2.data-00000-of-00001")))
	sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, "m-00000-of-00002"), []byte("one of two files of other data"), 0o666))
	log, lines := sessiontest.NewLog()
	sessiontest.MustNoErr(t, (&Saver{Logger: log}).RemoveLeftovers(dir, "m"))
	if got := sessiontest.Files(t, dir, "*"); len(got) != 3+1 || strings.Contains(lines.String(), "of-00002") {
		t.Errorf("left: %v; log: %s", got, lines)
	}
	if err := new(Saver).RemoveLeftovers(filepath.Join(dir, "none"), "m"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}

// A removal that fails is reported, and the next attempt removes the rest.
func TestRemoveLeftoversEveryOperationFails(t *testing.T) {
	files := []string{
		"m-1.data-00000-of-00002", "m-1.data-00001-of-00002",
		"m-2-00000-of-00003", "m-2-00001-of-00003",
		"m-3.previous.data-00000-of-00001", "m-3.previous.index", "m-3.data-00000-of-00001", "m-3.index",
		"m-4.previous-00000-of-00001", "m-4-00000-of-00001",
	}
	for n := 1; ; n++ {
		dir := withFiles(t, files...)
		fsys := faultfs.New(n)
		s := &Saver{FS: fsys}
		err := s.RemoveLeftovers(dir, "m")
		if fsys.Ops() < n {
			if n < 8 {
				t.Errorf("only %d operations", n)
			}
			break
		}
		if !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("operation %d (%s) fails: %v", n, fsys.Failed(), err)
		}
		sessiontest.MustNoErr(t, (&Saver{}).RemoveLeftovers(dir, "m"))
		want := []string{"m-3.data-00000-of-00001", "m-3.index", "m-4-00000-of-00001"}
		got := sessiontest.Files(t, dir, "*")
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("operation %d (%s) fails: left (-got +want):\n%s", n, fsys.Failed(), diff)
		}
	}
}

// Whatever operation of a change of names fails, it is reported, a checkpoint is
// whole under one of the two names, and the change can be made after that.
func TestOverwritingEveryOperationFails(t *testing.T) {
	for name, s := range savers() {
		t.Run(name, func(t *testing.T) {
			sweep(t, func(t *testing.T, dir string) (string, func(fsys *faultfs.FS) error) {
				prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 4)
				sessiontest.MustNoErr(t, overwriting(s, prefix))
				return prefix, func(fsys *faultfs.FS) error { // the names back
					again := &Saver{Shards: s.Shards, Format: s.Format, FS: fsys}
					return again.reinstate(previousName(prefix), prefix)
				}
			})
			sweep(t, func(t *testing.T, dir string) (string, func(fsys *faultfs.FS) error) {
				prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 4)
				return prefix, func(fsys *faultfs.FS) error {
					again := &Saver{Shards: s.Shards, Format: s.Format, FS: fsys}
					if unsharded(prefix) != prefix {
						return again.keepPreviousShards(unsharded(prefix), s.Shards)
					}
					return again.keepPrevious(prefix)
				}
			})
		})
	}
}

// savers are Savers of all kinds of files.
func savers() map[string]*Saver {
	return map[string]*Saver{"one file": {}, "two files": {Shards: 2}, "V1 in two files": {Shards: 2, Format: FormatV1}}
}

func twoVariables(x float32) *sessiontest.Session {
	return sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector(x), "w": sessiontest.Vector(x, x)})
}

// sweep lets each operation of an action fail in turn, in a directory of its own
// that prepare fills. The action must report it, and a restart find the checkpoint.
func sweep(t *testing.T, prepare func(t *testing.T, dir string) (prefix string, action func(*faultfs.FS) error)) {
	t.Helper()
	for n := 1; ; n++ {
		dir := sessiontest.MemoryDir(t)
		prefix, action := prepare(t, dir)
		fsys := faultfs.New(n)
		err := action(fsys)
		what := fmt.Sprintf("operation %d (%s)", n, fsys.Failed())
		if fsys.Ops() < n {
			sessiontest.MustNoErr(t, err)
			if n < 3 {
				t.Errorf("only %d operations", n)
			}
			return
		}
		if fsys.FailedKind() == "link" { // then it is copied
			sessiontest.MustNoErr(t, err)
		} else if !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s fails: %v", what, err)
		}
		found := restoreFirst(t, twoVariables(0), dir, "m")
		if original, _ := cutPrevious(found); original != prefix {
			t.Errorf("%s fails: found %q, want %s", what, found, prefix)
		}
		sessiontest.MustNoErr(t, action(faultfs.New(0)))
	}
}

// A save that fails leaves nothing of itself, whatever operation it is: the disk
// may be full, and the training continue for weeks.
func TestFailedSaveLeavesNothing(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := sessiontest.MemoryDir(t)
				s := &Saver{Shards: kind.Shards, Format: kind.Format}
				first := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
				before := sessiontest.Files(t, dir, "*")
				fsys := faultfs.New(n)
				log, lines := sessiontest.NewLog()
				s.FS, s.Logger = fsys, log
				_, err := s.Save(t.Context(), twoVariables(2), filepath.Join(dir, "m"), 2)
				if fsys.Ops() < n {
					sessiontest.MustNoErr(t, err)
					break
				}
				what := fmt.Sprintf("operation %d (%s)", n, fsys.Failed())
				if strings.Contains(lines.String(), "part of a checkpoint could not be deleted") {
					t.Errorf("%s fails; the log:\n%s", what, lines)
				}
				if fsys.FailedKind() == "remove" {
					continue // the next start removes what could not be removed
				}
				after := slices.DeleteFunc(sessiontest.Files(t, dir, "*"), func(name string) bool { return slices.Contains(before, name) })
				if whole := restoreFirst(t, twoVariables(0), dir, "m"); err != nil && whole == first && len(after) > 0 && !slices.Contains(after, "m-2.index") && !slices.Contains(after, "m-2-00000-of-00002") {
					t.Errorf("%s fails: left: %v", what, after)
				}
			}
		})
	}
}
