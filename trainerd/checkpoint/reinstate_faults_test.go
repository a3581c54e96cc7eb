package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// eachFault calls f with a disk that fails once, or from then on, in one kind of operation or
// in all, at each of the operations of f in turn, until there are no more.
func eachFault(f func(fsys *faultfs.FS)) {
	for _, fault := range []faultfs.Fault{{}, {Lasting: true}, {Kill: true}} {
		for at := 1; ; at++ {
			fault.At = at
			fsys := faultfs.NewFault(fault)
			if f(fsys); fsys.Failed() == "" {
				break
			}
		}
	}
}

// complete reports whether all files of a checkpoint are there.
func complete(t *testing.T, prefix string, files int) bool {
	t.Helper()
	all := "-*-of-*"
	if unsharded(prefix) == prefix {
		all = ".data-*" // the index, which makes it whole, comes last
	}
	return whole(prefix) && len(sessiontest.Files(t, filepath.Dir(prefix), filepath.Base(unsharded(prefix))+all)) == files
}

// The checkpoint that is about to be overwritten stays, under one name or the other,
// whatever fails and whatever an earlier crash has left; without an error it has its
// second name.
func TestKeepPreviousEveryOperationFails(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			files := max(kind.Shards, 1)
			eachFault(func(fsys *faultfs.FS) {
				dir := sessiontest.MemoryDir(t)
				prefix := save(t, &Saver{Shards: kind.Shards, Format: kind.Format}, twoVariables(1), filepath.Join(dir, "m"), 4)
				leftover := layout.DataName(previousName(prefix), 0, files)
				if unsharded(prefix) != prefix {
					leftover = layout.V1ShardName(unsharded(prefix)+previousSuffix, 0, files)
				}
				sessiontest.MustNoErr(t, os.WriteFile(leftover, []byte("other"), 0o666))
				err := overwriting(&Saver{Shards: kind.Shards, Format: kind.Format, FS: fsys}, prefix)
				kept := complete(t, previousName(prefix), files)
				if err == nil && !kept || !kept && !complete(t, prefix, files) {
					t.Errorf("%s: %v; left %v", fsys.Failed(), err, sessiontest.Files(t, dir, "*"))
				}
				if whole(previousName(prefix)) && !kept {
					t.Errorf("%s: the last file is there before others: %v", fsys.Failed(), sessiontest.Files(t, dir, "*"))
				}
			})
		})
	}
}

// A checkpoint that gets its own name back is whole under the name that is returned,
// whatever fails.
func TestReinstateEveryOperationFails(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			files := max(kind.Shards, 1)
			eachFault(func(fsys *faultfs.FS) {
				dir := sessiontest.MemoryDir(t)
				s := &Saver{Shards: kind.Shards, Format: kind.Format}
				prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 4)
				sessiontest.MustNoErr(t, overwriting(s, prefix))
				s.FS = fsys
				if got := s.Reinstate(previousName(prefix)); !complete(t, got, files) {
					t.Errorf("%s: %s is not whole: %v", fsys.Failed(), got, sessiontest.Files(t, dir, "*"))
				}
				if whole(prefix) && !complete(t, prefix, files) {
					t.Errorf("%s: the last file is there before others: %v", fsys.Failed(), sessiontest.Files(t, dir, "*"))
				}
			})
		})
	}
}

// Nothing is reinstated over a whole checkpoint, nor from a part of one.
func TestNotReinstated(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.MemoryDir(t)
			s := &Saver{Shards: kind.Shards, Format: kind.Format}
			prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 4)
			unchanged := func(what string) {
				t.Helper()
				before := sessiontest.Files(t, dir, "*")
				if got := s.Reinstate(previousName(prefix)); got != previousName(prefix) || strings.Join(sessiontest.Files(t, dir, "*"), " ") != strings.Join(before, " ") {
					t.Errorf("%s: %s, and of %v are left %v", what, got, before, sessiontest.Files(t, dir, "*"))
				}
			}
			for _, name := range sessiontest.Files(t, dir, "m-4*") {
				second := filepath.Join(dir, strings.Replace(name, "m-4", "m-4"+previousSuffix, 1))
				sessiontest.MustNoErr(t, os.Link(filepath.Join(dir, name), second))
			}
			unchanged("both are whole")
			for _, last := range []string{prefix + indexSuffix, layout.V1ShardName(unsharded(prefix), 0, max(kind.Shards, 1))} {
				os.Remove(last) // that of the form which this one has
				os.Remove(filepath.Join(dir, strings.Replace(filepath.Base(last), "m-4", "m-4"+previousSuffix, 1)))
			}
			unchanged("neither is whole")
		})
	}
}

// withoutLast removes the file of a checkpoint that is published last.
func withoutLast(prefix string, shards int) string {
	for _, last := range []string{prefix + indexSuffix, layout.V1ShardName(unsharded(prefix), 0, shards)} {
		os.Remove(last) // that of the form which this one has
	}
	return prefix
}

// What is there of a checkpoint that was not completed is removed, in each form.
func TestDiscardPartial(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.MemoryDir(t)
			log, lines := sessiontest.NewLog()
			s := &Saver{Shards: kind.Shards, Format: kind.Format, Logger: log}
			prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 4)
			before := len(sessiontest.Files(t, dir, "m-4*"))
			if s.discardPartial(prefix); len(sessiontest.Files(t, dir, "m-4*")) != before {
				t.Errorf("of a whole one are left %v", sessiontest.Files(t, dir, "m-4*"))
			}
			withoutLast(prefix, max(kind.Shards, 1))
			if s.discardPartial(prefix); len(withoutManifest(sessiontest.Files(t, dir, "m-4*-of-*"))) > 0 {
				t.Errorf("left %v", sessiontest.Files(t, dir, "m-4*"))
			}
			if strings.Contains(lines.String(), "could not be deleted") {
				t.Errorf("log:\n%s", lines)
			}
			name := withoutLast(save(t, s, twoVariables(1), filepath.Join(dir, "n"), 4), max(kind.Shards, 1))
			s.FS = &refuseRemove{FS: atomicfile.OrOS(nil), name: "n-4"}
			s.discardPartial(name)
			sessiontest.WantLog(t, lines, "could not be deleted", "n-4")
		})
	}
}
