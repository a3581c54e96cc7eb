//go:build unix

package found

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// freeDisk is a disk with so many bytes free.
type freeDisk struct {
	atomicfile.FS
	free int64
}

func (d freeDisk) FreeSpace(string) (int64, error) { return d.free, nil }

// TestShortOnAFullDisk has a file that is shorter than those before it. It was cut if there were enough of them, or
// if the disk is full and there were two, or it is the last that the program has written.
func TestShortOnAFullDisk(t *testing.T) {
	const size = 100
	for _, tc := range []struct {
		before, bytes int
		last          bool
		free          int64
		takesNone     bool
		want          bool
	}{
		{before: 3, bytes: size - 1, free: size, want: true},
		{before: 3, bytes: size, free: size - 1, last: true, want: false},
		{before: 2, bytes: size - 1, free: size - 1, want: true},
		{before: 2, bytes: size - 1, free: size, want: false},
		{before: 2, bytes: size - 1, free: size, takesNone: true, want: true},
		{before: 1, bytes: size - 1, free: size - 1, want: false},
		{before: 1, bytes: size - 1, free: size - 1, last: true, want: true},
		{before: 1, bytes: size - 1, free: size, last: true, want: false},
		{before: 0, bytes: size - 1, free: 0, last: true, want: false},
	} {
		dir := t.TempDir()
		write := func(step, bytes int) {
			childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d.bin", step)), strings.Repeat("w", bytes))
		}
		for step := range tc.before {
			write(step+1, size)
		}
		s := openStore(t, dir, "w-*")
		s.Refresh(true)
		write(9, tc.bytes)
		s.disk = freeDisk{s.disk, tc.free}
		if tc.takesNone {
			s.disk = usedUp{FS: s.disk, create: syscall.ENOSPC}
		}
		c := s.find()[key{step: 9}]
		c.last = tc.last
		if err := s.isShort(c); (err != nil) != tc.want {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// TestCandidatesKnowWhetherTheyAreLast has a verification, which may be another goroutine's, go by what the scan
// has found of where the program is.
func TestCandidatesKnowWhetherTheyAreLast(t *testing.T) {
	for _, past := range []bool{false, true} {
		s := openStore(t, childtest.Logdir(t, "ckpt-1"), "ckpt-*")
		s.opts.IsPast = func(*Checkpoint) bool { return past }
		all := s.Candidates(true)
		s.opts.IsPast = func(*Checkpoint) bool { panic("a verification asks the run") }
		if len(all) != 1 || all[0].last == past {
			t.Errorf("it is past: %v; the candidates are %+v", past, all)
		}
		s.Verify(t.Context(), all)
	}
}

// TestShorterThanTwoOnAFullDisk has two files that differ: one is not cut that is shorter by no more than twice that.
func TestShorterThanTwoOnAFullDisk(t *testing.T) {
	for bytes, want := range map[int]bool{98: false, 97: true} {
		dir := t.TempDir()
		for i, size := range []int{100, 101, bytes} {
			childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d.bin", i+1)), strings.Repeat("w", size))
		}
		s := openStore(t, dir, "w-*")
		first := s.Candidates(true)[:2]
		s.Accept(s.Verify(t.Context(), first))
		s.disk = freeDisk{s.disk, 0}
		if err := s.isShort(s.find()[key{step: 3}]); (err != nil) != want {
			t.Errorf("one of %d bytes: %v", bytes, err)
		}
	}
}

// TestShortTwiceOnAFullDisk has a full disk cut two checkpoints in the same way: that is not how the program writes.
func TestShortTwiceOnAFullDisk(t *testing.T) {
	for _, tc := range []struct {
		free  int64
		whole []string // files
		cut   []string
		want  bool // the second does not count either
	}{
		{0, []string{"w-STEP.bin 100"}, []string{"w-STEP.bin 50"}, true},
		{100, []string{"w-STEP.bin 100"}, []string{"w-STEP.bin 50"}, false},
		{99, []string{"w-STEP/a 60", "w-STEP/b 40"}, []string{"w-STEP/a 60"}, true},
		{100, []string{"w-STEP/a 60", "w-STEP/b 40"}, []string{"w-STEP/a 60"}, false},
	} {
		dir := t.TempDir()
		write := func(step string, files []string) {
			for _, file := range files {
				name, size, _ := strings.Cut(strings.ReplaceAll(file, "STEP", step), " ")
				bytes, _ := strconv.Atoi(size)
				childtest.Write(t, filepath.Join(dir, name), strings.Repeat("w", bytes))
			}
		}
		for _, step := range []string{"1", "2", "3"} {
			write(step, tc.whole)
		}
		s := openStore(t, dir, "w-*")
		s.Refresh(true)
		s.disk = freeDisk{s.disk, tc.free}
		write("8", tc.cut)
		if _, bad := s.Refresh(true); len(bad) != 1 {
			t.Fatalf("%+v: the first counts", tc)
		}
		write("9", tc.cut)
		if _, bad := s.Refresh(true); (len(bad) == 1) != tc.want {
			t.Errorf("%+v: known are %v", tc, steps(s.Known()))
		}
	}
}
