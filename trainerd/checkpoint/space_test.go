package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// fullFS is a disk of limited size, on which only the files of one directory
// are.
type fullFS struct {
	atomicfile.FS
	size int64
}

func (f fullFS) FreeSpace(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	free := f.size
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			free -= info.Size()
		}
	}
	return free, err
}

// A save that cannot fit is not begun; what retention would delete after the
// save goes before it, but never the last checkpoint there is.
func TestDiskForecast(t *testing.T) {
	const elements = 100_000 // about 400 kB
	dir := t.TempDir()
	path := filepath.Join(dir, "m")
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector(make([]float32, elements)...)})
	disk := &fullFS{atomicfile.OrOS(nil), 1_300_000}
	s := &Saver{MaxToKeep: 2, FS: disk}
	save(t, s, sess, path, 1)
	save(t, s, sess, path, 2)
	save(t, s, sess, path, 3) // fits only when the first is gone before
	if got := sessiontest.Files(t, dir, "*.index"); !cmp.Equal(got, []string{"m-2.index", "m-3.index"}) {
		t.Errorf("checkpoints %v", got)
	}
	disk.size = 900_000
	save(t, s, sess, path, 4)
	disk.size = 500_000
	_, err := s.Save(t.Context(), sess, path, 5)
	var full *NoSpaceError
	if !errors.As(err, &full) || full.Need < 4*elements || full.Free >= full.Need || !strings.Contains(err.Error(), "make room") || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Save on a full disk = %v; want a *NoSpaceError", err)
	}
	if got := sessiontest.Files(t, dir, "*"); !cmp.Equal(got, []string{"checkpoint", "m-4.data-00000-of-00001", "m-4.index", "m-4.manifest.json"}) {
		t.Errorf("files %v; want the newest checkpoint whole", got)
	}
	disk.size = 2_000_000
	save(t, s, sess, path, 6)
	if got := s.LastCheckpoints(); len(got) != 2 {
		t.Errorf("looks after %v; want two", got)
	}
}

// steps returns the steps whose checkpoints a directory has.
func steps(t *testing.T, dir string) (all []int64) {
	t.Helper()
	for _, name := range sessiontest.Files(t, dir, "*.index") {
		all = append(all, stepOf(strings.TrimSuffix(name, ".index")))
	}
	return all
}

// fixedFS is a disk that says how much is free, and an error where that is negative.
type fixedFS struct {
	atomicfile.FS
	free []int64 // one answer after the other, the last one again and again
}

func (f *fixedFS) FreeSpace(string) (int64, error) {
	free := f.free[0]
	if len(f.free) > 1 {
		f.free = f.free[1:]
	}
	if free < 0 {
		return 0, errStore
	}
	return free, nil
}

// Just enough is enough. What the disk does not tell does not stop a save, and
// nothing is deleted for that.
func TestJustEnoughSpace(t *testing.T) {
	cut := func(s *Saver) *Snapshot {
		c, err := s.Snapshot(t.Context(), twoVariables(1), "")
		sessiontest.MustNoErr(t, err)
		return c
	}
	need := new(Saver).need(cut(new(Saver)))
	for name, tt := range map[string]struct {
		free []int64
		gone bool // the first checkpoint, before the save
		fail bool
	}{
		"enough":                         {free: []int64{need}},
		"a byte less":                    {free: []int64{need - 1}, gone: true, fail: true},
		"enough after the deletion":      {free: []int64{need - 1, need}, gone: true},
		"not told":                       {free: []int64{-1}},
		"not told after the deletion":    {free: []int64{need - 1, -1}, gone: true},
		"a byte less after the deletion": {free: []int64{0, need - 1}, gone: true, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.MemoryDir(t)
			s := &Saver{MaxToKeep: 2}
			save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
			save(t, s, twoVariables(1), filepath.Join(dir, "m"), 2)
			s.FS = &fixedFS{atomicfile.OrOS(nil), tt.free}
			err := s.makeRoom(cut(s), filepath.Join(dir, "m-3"))
			var full *NoSpaceError
			if errors.As(err, &full) != tt.fail || err != nil && !tt.fail {
				t.Errorf("%v", err)
			}
			want := []int64{1, 2}
			if tt.gone {
				want = want[1:]
			}
			if got := steps(t, dir); !cmp.Equal(got, want) {
				t.Errorf("checkpoints %v, want %v", got, want)
			}
			if got := stepsOf(s.LastCheckpoints()); !cmp.Equal(got, want) {
				t.Errorf("looks after %v, want %v", got, want)
			}
			state, err := ckptdir.ReadState(dir, nil)
			sessiontest.MustNoErr(t, err)
			if listed := stepsOf(state.GetAllModelCheckpointPaths()); stepOf(state.GetModelCheckpointPath()) != 2 || !cmp.Equal(listed, want) {
				t.Errorf("current is %s, listed %v, want %v", state.GetModelCheckpointPath(), listed, want)
			}
		})
	}
}

// The forecast counts tensors, strings and the graph.
func TestNeed(t *testing.T) {
	need := func(s *Saver, vars map[string]*ckptfmt.Tensor) int64 {
		c, err := s.Snapshot(t.Context(), sessiontest.SessionOf(vars), "")
		sessiontest.MustNoErr(t, err)
		return s.need(c) - spaceForRest
	}
	small := map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1, 2)}
	if got := need(new(Saver), small); got != spacePerTensor+8 {
		t.Errorf("of two floats: %d bytes", got)
	}
	if got := need(new(Saver), map[string]*ckptfmt.Tensor{"v": sessiontest.Vector("abc", "")}); got != spacePerTensor+3+20 {
		t.Errorf("of two strings: %d bytes", got)
	}
	g := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: strings.Repeat("n", 1000)}}}}
	if got := need(&Saver{MetaGraph: g, Variables: VariableList("v")}, small); got < spacePerTensor+1008 || got > spacePerTensor+1030 {
		t.Errorf("with a graph: %d bytes", got)
	}
	for _, tt := range []struct {
		info session.VariableInfo
		want int64
	}{
		{session.VariableInfo{DType: tfpb.DataType_DT_DOUBLE, Shape: []int64{3, 2}}, 48},
		{session.VariableInfo{DType: tfpb.DataType_DT_STRING, Shape: []int64{5}}, 5},
		{session.VariableInfo{DType: tfpb.DataType_DT_INT32, Shape: []int64{-1}}, 0},
	} {
		if got := byteSize(tt.info); got != tt.want {
			t.Errorf("%v: %d bytes", tt.info, got)
		}
	}
}

// Where there is nothing to delete ahead of a save, the newest stays, and so does one
// that the save overwrites.
func TestNothingToEvict(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	s := &Saver{MaxToKeep: 1, FS: &fixedFS{atomicfile.OrOS(nil), []int64{0}}}
	if err := s.evictAhead(filepath.Join(dir, "m-1")); err != nil {
		t.Errorf("without checkpoints: %v", err)
	}
	free := &Saver{MaxToKeep: 2}
	save(t, free, twoVariables(1), filepath.Join(dir, "m"), 1)
	save(t, free, twoVariables(1), filepath.Join(dir, "m"), 2)
	s.RecoverLastCheckpoints([]string{filepath.Join(dir, "m-1"), filepath.Join(dir, "m-2")})
	if _, err := s.Save(t.Context(), twoVariables(1), filepath.Join(dir, "m"), 1); err == nil {
		t.Error("saved on a full disk")
	}
	if got := steps(t, dir); !cmp.Equal(got, []int64{1, 2}) {
		t.Errorf("checkpoints %v", got)
	}
	// Those that could not be deleted are tried again by the next save.
	disk := &refuseRemove{FS: atomicfile.OrOS(nil), name: "m-1"}
	s.FS = disk
	sessiontest.MustNoErr(t, s.evictAhead(filepath.Join(dir, "m-3")))
	disk.name = ""
	sessiontest.MustNoErr(t, s.evictAhead(filepath.Join(dir, "m-3")))
	if got := steps(t, dir); !cmp.Equal(got, []int64{2}) {
		t.Errorf("checkpoints %v", got)
	}
	save(t, free, twoVariables(1), filepath.Join(dir, "m"), 1)
	s.FS = nil
	s.RecoverLastCheckpoints([]string{filepath.Join(dir, "m-1"), filepath.Join(dir, "m-2")})
	for n := 1; ; n++ {
		fsys := faultfs.New(n)
		s.FS = fsys
		err := s.evictAhead(filepath.Join(dir, "m-3"))
		if fsys.Ops() < n {
			break
		}
		if kind := fsys.FailedKind(); err == nil && kind != "remove" && kind != "sync directory" {
			t.Errorf("%s fails, and nothing is reported", fsys.Failed())
		}
	}
}

// No shard is empty, and none much larger than need be.
func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		sizes  []int64
		shards int
		want   []int
	}{
		{[]int64{1, 1, 1, 1}, 2, []int{2, 2}},
		{[]int64{100, 1, 1}, 3, []int{1, 1, 1}},
		{[]int64{1, 1, 100}, 3, []int{1, 1, 1}},
		{[]int64{1, 1, 100}, 2, []int{2, 1}},
		{[]int64{100, 1, 1}, 2, []int{1, 2}},
		{[]int64{5}, 4, []int{1}},
		{[]int64{0, 0, 0}, 2, []int{1, 2}},
		{[]int64{1, 2, 3, 4, 5, 6}, 3, []int{4, 1, 1}},
		{[]int64{7, 7}, 0, []int{2}},
	} {
		cut := new(Snapshot)
		for _, size := range tt.sizes {
			cut.tensors = append(cut.tensors, snapshotTensor{size: size})
		}
		var got []int
		for _, part := range (&Saver{Shards: tt.shards}).split(cut) {
			got = append(got, len(part))
		}
		if !cmp.Equal(got, tt.want) {
			t.Errorf("%v in %d: %v, want %v", tt.sizes, tt.shards, got, tt.want)
		}
	}
}

// TestCurrentIsGone has somebody delete what the training continues from: the newest
// checkpoint takes its place.
func TestCurrentIsGone(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	s, sess, path := new(Saver), twoVariables(1), filepath.Join(dir, "m")
	first := save(t, s, sess, path, 1)
	newest := stored{prefix: save(t, s, sess, path, 2)}
	sessiontest.MustNoErr(t, s.MakeCurrent(dir, first))
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, first))
	if got := s.currentOr(newest); got.prefix != first {
		t.Fatalf("the training continues from %s", got.prefix)
	}
	sessiontest.MustNoErr(t, ckptdir.Remove(first, nil))
	if got := s.currentOr(newest); got.prefix != newest.prefix {
		t.Errorf("without it, from %s", got.prefix)
	}
}

// A model goes back to an earlier checkpoint, and the next save finds the disk nearly full: what
// it continues from stays, and stays what a restart takes, whether it rotates, is still to be
// deleted, or is kept by something else. Once the save is there, it goes as any other.
func TestFullDiskAfterGoingBack(t *testing.T) {
	for name, tt := range map[string]struct {
		keep        int
		fails       string // a checkpoint whose deletion fails, as on a disk that was away
		pin         string
		full, after []int64
	}{
		"rotates":       {keep: 3, full: []int64{6, 8}, after: []int64{6, 7, 8}},
		"falls out":     {keep: 2, full: []int64{6, 8}, after: []int64{7, 8}},
		"to be deleted": {keep: 1, fails: "m-6", full: []int64{6, 8}, after: []int64{7}},
		"pinned":        {keep: 1, pin: "m-6", full: []int64{6, 8}, after: []int64{6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sessiontest.MemoryDir(t)
			path := filepath.Join(dir, "m")
			disk := &heldFS{FS: atomicfile.OrOS(nil)}
			s := &Saver{MaxToKeep: tt.keep, FS: disk}
			sess := twoVariables(1)
			for _, step := range []int64{4, 6, 8} {
				if step == 8 {
					disk.held = tt.fails
				}
				save(t, s, sess, path, step)
				if tt.pin != "" && step == 6 {
					sessiontest.MustNoErr(t, s.Pin(filepath.Join(dir, tt.pin)))
				}
			}
			disk.held = ""
			sessiontest.MustNoErr(t, s.MakeCurrent(dir, filepath.Join(dir, "m-6")))
			sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, filepath.Join(dir, "m-6")))
			s.FS = &fixedFS{disk, []int64{0}}
			var full *NoSpaceError
			if _, err := s.Save(t.Context(), sess, path, 7); !errors.As(err, &full) {
				t.Fatalf("Save on a full disk = %v", err)
			}
			if got := steps(t, dir); !cmp.Equal(got, tt.full) {
				t.Errorf("checkpoints %v, want %v", got, tt.full)
			}
			if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || stepOf(prefix) != 6 {
				t.Errorf("current is %s, %v", prefix, err)
			}
			s.FS = disk
			save(t, s, sess, path, 7)
			if got := steps(t, dir); !cmp.Equal(got, tt.after) {
				t.Errorf("once there is space: checkpoints %v, want %v", got, tt.after)
			}
			if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || stepOf(prefix) != 7 {
				t.Errorf("once there is space: current is %s, %v", prefix, err)
			}
		})
	}
}

// A checkpoint was written, but not the state file with it, as on a disk that is nearly full. The
// next save makes room: what the state file names stays until that names another.
func TestFullDiskAfterStateFails(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	disk := &refuseState{FS: atomicfile.OrOS(nil)}
	s := &Saver{MaxToKeep: 1, FS: disk}
	path := filepath.Join(dir, "m")
	save(t, s, twoVariables(1), path, 1)
	disk.refuses = true
	if _, err := s.Save(t.Context(), twoVariables(2), path, 2); !errors.Is(err, errStore) {
		t.Fatalf("without a state file: %v", err)
	}
	s.FS = &fixedFS{disk, []int64{0}}
	if _, err := s.Save(t.Context(), twoVariables(3), path, 3); !errors.Is(err, errStore) {
		t.Errorf("making room: %v", err)
	}
	if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || stepOf(prefix) != 1 || restoreFirst(t, twoVariables(0), dir, "m") != prefix {
		t.Errorf("current is %s, %v; files %v", prefix, err, sessiontest.Files(t, dir, "*"))
	}
	disk.refuses = false
	var full *NoSpaceError
	if _, err := s.Save(t.Context(), twoVariables(3), path, 3); !errors.As(err, &full) {
		t.Errorf("Save on a full disk = %v", err)
	}
	if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || stepOf(prefix) != 2 || !cmp.Equal(steps(t, dir), []int64{2}) {
		t.Errorf("current is %s, %v; files %v", prefix, err, sessiontest.Files(t, dir, "*"))
	}
}

// There is no room even for the state file, until an old checkpoint is deleted: one that it does
// not name makes room for it, and the next save for itself.
func TestFullDiskForStateFile(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	path := filepath.Join(dir, "m")
	disk := &refuseState{FS: atomicfile.OrOS(nil)}
	s := &Saver{MaxToKeep: 2, FS: disk}
	for step := range int64(2) {
		save(t, s, twoVariables(float32(step)), path, step)
	}
	disk.refuses = true
	if _, err := s.Save(t.Context(), twoVariables(2), path, 2); !errors.Is(err, errStore) {
		t.Fatalf("without a state file: %v", err)
	}
	disk.until = path + "-0"
	s.FS = &fixedFS{disk, []int64{0, 0, 1 << 20}}
	var full *NoSpaceError
	if _, err := s.Save(t.Context(), twoVariables(3), path, 3); !errors.As(err, &full) {
		t.Errorf("making room for the state file: %v", err)
	}
	if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || stepOf(prefix) != 2 || !cmp.Equal(steps(t, dir), []int64{1, 2}) {
		t.Errorf("current is %s, %v; files %v", prefix, err, sessiontest.Files(t, dir, "*"))
	}
	save(t, s, twoVariables(3), path, 3)
	if got := steps(t, dir); !cmp.Equal(got, []int64{2, 3}) {
		t.Errorf("at the end there are %v", got)
	}
}

// The state file is gone, and a full disk takes no other: nothing is deleted, since nobody could
// tell what the next start continues from.
func TestFullDiskWithoutStateFile(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	path := filepath.Join(dir, "m")
	disk := &refuseState{FS: atomicfile.OrOS(nil)}
	s := &Saver{MaxToKeep: 2, FS: disk}
	for step := range int64(2) {
		save(t, s, twoVariables(float32(step)), path, step)
	}
	disk.refuses = true
	s.FS = &fixedFS{disk, []int64{0}}
	if err := os.Remove(filepath.Join(dir, "checkpoint")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), twoVariables(2), path, 2); !errors.Is(err, errStore) {
		t.Errorf("without a state file: %v", err)
	}
	if got := steps(t, dir); !cmp.Equal(got, []int64{0, 1}) {
		t.Errorf("there are %v", got)
	}
}

// Any operation of a save fails, once or for long, and the next save finds the disk full:
// what the state file names is there, with its own values.
func TestFullDiskAfterEveryFailure(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			eachFault(func(fsys *faultfs.FS) {
				dir := sessiontest.MemoryDir(t)
				path := filepath.Join(dir, "m")
				s := &Saver{Shards: kind.Shards, Format: kind.Format, MaxToKeep: 1, MetaGraph: &tfpb.MetaGraphDef{}}
				save(t, s, twoVariables(1), path, 1)
				s.FS = fsys
				_, failed := s.Save(t.Context(), twoVariables(2), path, 2)
				s.FS = &fixedFS{fsys, []int64{0}}
				if _, err := s.Save(t.Context(), twoVariables(3), path, 3); err == nil {
					t.Errorf("%s fails: saved on a full disk", fsys.Failed())
				}
				checkCurrent(t, fsys.Failed(), dir, failed)
			})
		})
	}
}

// refuseState is a disk that takes no state file, while a checkpoint is there, if one is named.
type refuseState struct {
	atomicfile.FS
	refuses bool
	until   string
}

func (f *refuseState) Rename(from, to string) error {
	if f.refuses && filepath.Base(to) == DefaultLatestFilename && (f.until == "" || layout.Exists(f.until)) {
		return errStore
	}
	return f.FS.Rename(from, to)
}

// The state file of a copied folder names the checkpoints of the original by absolute paths, and
// somebody has chosen an earlier one: it stays chosen on a full disk, until there is another.
func TestFullDiskAfterCopy(t *testing.T) {
	original, dir, sess := sessiontest.MemoryDir(t), sessiontest.MemoryDir(t), twoVariables(1)
	first := &Saver{AbsolutePaths: true}
	for _, step := range []int64{1, 2, 3} {
		save(t, first, sess, filepath.Join(original, "m"), step)
	}
	chosen := filepath.Join(original, "m-2")
	s := &Saver{MaxToKeep: 2, AbsolutePaths: true, FS: &fixedFS{atomicfile.OrOS(nil), []int64{0}}}
	s.RecoverLastCheckpoints(first.LastCheckpoints())
	sessiontest.MustNoErr(t, s.MakeCurrent(dir, chosen))
	sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, chosen))
	var full *NoSpaceError
	if _, err := s.Save(t.Context(), sess, filepath.Join(dir, "m"), 4); !errors.As(err, &full) {
		t.Fatalf("Save on a full disk = %v", err)
	}
	if prefix, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || prefix != chosen {
		t.Errorf("current is %s, %v; want %s", prefix, err, chosen)
	}
	if got := steps(t, original); !cmp.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("the original has %v", got)
	}
}

// heldFS is a disk that does not delete the files of one checkpoint.
type heldFS struct {
	atomicfile.FS
	held string
}

func (f *heldFS) Remove(name string) error {
	if f.held != "" && strings.HasPrefix(filepath.Base(name), f.held+".") {
		return errStore
	}
	return f.FS.Remove(name)
}

func (f *heldFS) Rename(from, to string) error {
	if f.held != "" && strings.HasPrefix(filepath.Base(from), f.held+".") {
		return errStore
	}
	return f.FS.Rename(from, to)
}
