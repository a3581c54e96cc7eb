package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// rotationRig saves the same model under step numbers.
type rotationRig struct {
	t    *testing.T
	dir  string
	sess session.Session
}

func newRig(t *testing.T) *rotationRig {
	m := sessiontest.NewModel(map[string]*ckptfmt.Tensor{"w": ckptfmt.Scalar(float32(1))})
	m.Vars["w"].Ready = true
	s, _ := m.NewSession(t.Context())
	return &rotationRig{t, t.TempDir(), s}
}

func (r *rotationRig) save(s *Saver, steps ...int64) {
	r.t.Helper()
	for _, step := range steps {
		_, err := s.Save(r.t.Context(), r.sess, filepath.Join(r.dir, "m"), step)
		sessiontest.MustNoErr(r.t, err)
	}
}

// onDisk returns the steps of which there are checkpoints.
func (r *rotationRig) onDisk() []int64 {
	var steps []int64
	for _, name := range sessiontest.Files(r.t, r.dir, "m-*.index") {
		steps = append(steps, stepOf(strings.TrimSuffix(name, ".index")))
	}
	slices.Sort(steps)
	return steps
}

func stepsOf(prefixes []string) []int64 {
	var steps []int64
	for _, p := range prefixes {
		steps = append(steps, stepOf(p))
	}
	return steps
}

// listed returns the steps that the state file lists, the current one first.
func (r *rotationRig) listed() []int64 {
	state, err := ckptdir.ReadState(r.dir, nil)
	sessiontest.MustNoErr(r.t, err)
	return append(stepsOf([]string{state.ModelCheckpointPath}), stepsOf(state.AllModelCheckpointPaths)...)
}

func (r *rotationRig) check(what string, s *Saver, disk, list, last []int64) {
	r.t.Helper()
	if diff := cmp.Diff(r.onDisk(), disk); diff != "" {
		r.t.Errorf("%s: on disk (-got +want):\n%s", what, diff)
	}
	if diff := cmp.Diff(r.listed(), list); diff != "" {
		r.t.Errorf("%s: state file (-got +want):\n%s", what, diff)
	}
	if diff := cmp.Diff(stepsOf(s.LastCheckpoints()), last, cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("%s: LastCheckpoints (-got +want):\n%s", what, diff)
	}
}

func seq(from, to int64) []int64 {
	var s []int64
	for ; from <= to; from++ {
		s = append(s, from)
	}
	return s
}

func TestRotationVectors(t *testing.T) {
	tests := []struct {
		name             string
		keep             int
		saves            []int64
		disk, list, last []int64
	}{
		{"keep 2", 2, seq(0, 3), seq(2, 3), []int64{3, 2, 3}, seq(2, 3)},
		{"keep 1", 1, seq(0, 3), []int64{3}, []int64{3, 3}, []int64{3}},
		{"default is 5", 0, seq(0, 7), seq(3, 7), []int64{7, 3, 4, 5, 6, 7}, seq(3, 7)},
		{"SA21 keep all lists the newest", -1, seq(0, 3), seq(0, 3), []int64{3, 3}, nil},
		{"saving again makes newest of three", 3, []int64{1, 2, 1, 3}, seq(1, 3), []int64{3, 2, 1, 3}, []int64{2, 1, 3}},
		{"saving again makes newest", 2, []int64{1, 2, 1, 3}, []int64{1, 3}, []int64{3, 1, 3}, []int64{1, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			s := &Saver{MaxToKeep: tt.keep}
			r.save(s, tt.saves...)
			r.check(tt.name, s, tt.disk, tt.list, tt.last)
		})
	}
}

// TensorFlow never shrinks a recovered list; here a smaller limit takes effect
// with the first save.
func TestSA26RecoverWithOtherLimit(t *testing.T) {
	r := newRig(t)
	r.save(&Saver{MaxToKeep: 5}, seq(1, 5)...)
	restart := func(keep int) *Saver {
		state, err := ckptdir.ReadState(r.dir, nil)
		sessiontest.MustNoErr(t, err)
		s := &Saver{MaxToKeep: keep}
		s.RecoverLastCheckpoints(state.AllModelCheckpointPaths)
		return s
	}
	s := restart(2)
	r.save(s, seq(6, 9)...)
	r.check("keep 2", s, seq(8, 9), []int64{9, 8, 9}, seq(8, 9))
	s = restart(1)
	r.save(s, 10)
	r.check("keep 1", s, []int64{10}, []int64{10, 10}, []int64{10})
	s = restart(-1)
	r.save(s, 11, 12)
	r.check("keep all", s, seq(10, 12), []int64{12, 10, 12}, []int64{10})
	s = restart(3)
	r.save(s, 13)
	r.check("keep 3", s, seq(10, 13), []int64{13, 10, 12, 13}, []int64{10, 12, 13})
}

func TestSA28SecondSaverLeavesFilesAlone(t *testing.T) {
	r := newRig(t)
	r.save(&Saver{MaxToKeep: 2}, 1, 2)
	s := &Saver{MaxToKeep: 2}
	r.save(s, 3, 4, 5)
	r.check("second saver", s, []int64{1, 2, 4, 5}, []int64{5, 4, 5}, []int64{4, 5})
}

// Every half hour a save, one an hour preserved: with restarts in between the
// same ones stay as without.
func TestSA22KeepEvery(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts=%v", restarts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				s := &Saver{MaxToKeep: 2, KeepEvery: time.Hour}
				for step := range int64(12) {
					r.save(s, step)
					if restarts {
						s = &Saver{MaxToKeep: 2, KeepEvery: time.Hour}
						found, err := Find(r.dir, DefaultLatestFilename, "m")
						sessiontest.MustNoErr(t, err)
						s.Recover(found, nil, found.Prefixes[0])
					}
					time.Sleep(30 * time.Minute)
				}
				if diff := cmp.Diff(r.onDisk(), []int64{3, 5, 7, 9, 10, 11}); diff != "" {
					t.Errorf("on disk (-got +want):\n%s", diff)
				}
			})
		})
	}
}

// What a policy keeps may be older than what it lets go: a restart after a kill in the
// middle of a deletion continues from the later one.
func TestKilledWhileDeletingLaterThanKept(t *testing.T) {
	r := newRig(t)
	disk := &refuseRemove{FS: atomicfile.OrOS(nil)}
	s := &Saver{Retention: []retention.Policy{retention.Last(2), retention.Steps{2}}, FS: disk}
	r.save(s, 2, 4, 6)
	disk.name = "m-4"
	r.save(s, 8)
	found, err := Find(r.dir, DefaultLatestFilename, "m")
	sessiontest.MustNoErr(t, err)
	var steps []int64
	for _, prefix := range found.Prefixes {
		steps = append(steps, stepOf(prefix))
	}
	if diff := cmp.Diff(steps, []int64{8, 6, 4, 2}); diff != "" {
		t.Errorf("a restart tries (-got +want):\n%s", diff)
	}
}

// The clock of a machine is set forth and back while its trainings are stopped: one
// an hour is preserved all the same, and the list grows no longer than that.
func TestKeepEveryWhenTheClockIsSet(t *testing.T) {
	const day = 24 * 3600
	for name, set := range map[string]map[int64]float64{
		"forth": {5: day}, "back": {5: -day}, "forth and back": {3: day, 9: -day}, "back and forth": {3: -day, 9: day}, "often": {3: day, 5: day, 7: -2 * day, 9: 300 * day, 11: -300 * day},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				s := &Saver{MaxToKeep: 2, KeepEvery: time.Hour}
				for step := range int64(16) {
					if by := set[step]; by != 0 {
						r.setClock(by)
						s = &Saver{MaxToKeep: 2, KeepEvery: time.Hour}
						found, err := Find(r.dir, DefaultLatestFilename, "m")
						sessiontest.MustNoErr(t, err)
						s.Recover(found, nil, found.Prefixes[0])
					}
					r.save(s, step)
					time.Sleep(30 * time.Minute)
				}
				kept := r.onDisk()
				for i, step := range kept[1:] {
					if step-kept[i] > 4 {
						t.Errorf("no checkpoint between the steps %d and %d is left of %v", kept[i], step, kept)
					}
				}
				if most := 16/2 + 2 + len(set); len(kept) > most {
					t.Errorf("%d checkpoints stay, want at most %d: %v", len(kept), most, kept)
				}
			})
		})
	}
}

// setClock sets the clock forth by seconds: what was saved before is older by that.
func (r *rotationRig) setClock(by float64) {
	r.t.Helper()
	name := filepath.Join(r.dir, ckptdir.StateName)
	state, err := ckptdir.ReadState(r.dir, nil)
	sessiontest.MustNoErr(r.t, err)
	state.LastPreservedTimestamp -= by
	for i := range state.AllModelCheckpointTimestamps {
		state.AllModelCheckpointTimestamps[i] -= by
	}
	sessiontest.MustNoErr(r.t, os.WriteFile(name, ckptdir.FormatState(state), 0o666))
}

// A preservation that a clock which was wrong has put far into the future does not keep
// later checkpoints from being preserved.
func TestKeepEveryAfterTheFuture(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r := rotation{lastPreserved: now.AddDate(1, 0, 0)}
	for i := range 3 {
		r.add(stored{prefix: fmt.Sprint(i), saved: now.Add(time.Duration(i) * 2 * time.Hour)}, 1, time.Hour)
	}
	if len(r.outside) != 1 || r.outside[0].Prefix != "1" {
		t.Errorf("preserved %v, want the one two hours after the first", r.outside)
	}
}

// A state file that was written before the clock of a machine was set at all names
// a time long ago: the points of a short period since then are not gone through
// one by one.
func TestKeepEveryFromTheBeginningOfTime(t *testing.T) {
	for _, since := range []time.Time{{}, time.Unix(1, 0)} {
		r := rotation{lastPreserved: since}
		now := time.Now()
		if !r.preserve(stored{saved: now}, time.Nanosecond) || !r.lastPreserved.Add(time.Nanosecond).Equal(now.Round(0)) {
			t.Errorf("since %v: preserved until %v, want %v", since, r.lastPreserved, now)
		}
	}
}

func TestKeepEveryAfterLongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := &Saver{MaxToKeep: 1, KeepEvery: time.Hour}
		r.save(s, 0)
		time.Sleep(100*time.Hour + 30*time.Minute)
		for step := range int64(5) {
			r.save(s, step+1)
			time.Sleep(time.Minute)
		}
		if diff := cmp.Diff(r.onDisk(), []int64{1, 5}); diff != "" {
			t.Errorf("one checkpoint of the hour after the pause stays (-got +want):\n%s", diff)
		}
	})
}

// A checkpoint that the Saver does not look after, as of a run that was killed before it could
// list it, is made current: a restart tries those before it next, and none that was saved later.
func TestMadeCurrentUnlisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := new(Saver)
		r.save(s, 1)
		time.Sleep(time.Hour)
		r.save(new(Saver), 2)
		prefix := filepath.Join(r.dir, "m-2")
		sessiontest.MustNoErr(t, os.Chtimes(prefix+indexSuffix, time.Now(), time.Now()))
		time.Sleep(time.Hour)
		r.save(s, 3)
		sessiontest.MustNoErr(t, s.MakeCurrent(r.dir, prefix))
		found, err := s.Find(r.dir, "m")
		sessiontest.MustNoErr(t, err)
		if want := []string{prefix, filepath.Join(r.dir, "m-1")}; !slices.Equal(found.Prefixes, want) {
			t.Errorf("a restart tries %v; want %v", found.Prefixes, want)
		}
	})
}

// A checkpoint that is made current again is the first that a restart tries, where it is in
// the rotation and where it is pinned, and the times of all survive.
func TestMadeCurrentWithTimes(t *testing.T) {
	for _, step := range []int64{1, 2, 3, 4} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			s := &Saver{MaxToKeep: 3, KeepEvery: 100 * time.Hour}
			began := time.Now()
			for n := range int64(4) {
				r.save(s, n+1)
				if n == 0 {
					sessiontest.MustNoErr(t, s.Pin(filepath.Join(r.dir, "m-1")))
				}
				time.Sleep(time.Hour)
			}
			prefix := filepath.Join(r.dir, fmt.Sprint("m-", step))
			old := time.Unix(1, 0) // the files are copied, or touched, afterwards
			sessiontest.MustNoErr(t, os.Chtimes(prefix+indexSuffix, old, began.Add(time.Duration(step-1)*time.Hour)))
			sessiontest.MustNoErr(t, s.MakeCurrent(r.dir, prefix))
			for _, name := range sessiontest.Files(t, r.dir, "*.index") {
				sessiontest.MustNoErr(t, os.Chtimes(filepath.Join(r.dir, name), old, old))
			}
			again := &Saver{MaxToKeep: 3, KeepEvery: 100 * time.Hour}
			found, err := again.Find(r.dir, "m")
			sessiontest.MustNoErr(t, err)
			again.Recover(found, nil, found.Prefixes[0])
			if found.Prefixes[0] != prefix || !slices.Contains(again.LastCheckpoints(), prefix) {
				t.Errorf("a restart tries %v, and looks after %v; want %s", found.Prefixes, again.LastCheckpoints(), prefix)
			}
			for _, k := range again.kept {
				if want := began.Add(time.Duration(stepOf(k.prefix)-1) * time.Hour); !k.saved.Equal(want) {
					t.Errorf("%s was saved %v, want %v", k.prefix, k.saved, want)
				}
			}
		})
	}
}

// A directory that was copied names the files of the original. They are not
// the copy's to delete.
func TestCK15CopiedDirectoryLeavesOriginal(t *testing.T) {
	r := newRig(t)
	r.save(&Saver{AbsolutePaths: true}, seq(1, 3)...)
	before := r.onDisk()
	dup := &rotationRig{t, sessiontest.CopyDir(t, r.dir), r.sess}
	s := &Saver{MaxToKeep: 1}
	found, err := Find(dup.dir, DefaultLatestFilename, "m")
	sessiontest.MustNoErr(t, err)
	s.Recover(found, nil, found.Prefixes[0])
	dup.save(s, 4)
	if diff := cmp.Diff(r.onDisk(), before); diff != "" {
		t.Errorf("original (-got +want):\n%s", diff)
	}
}

func TestSA24RemovesAllFilesOfCheckpointOnly(t *testing.T) {
	dir := t.TempDir()
	gone := []string{"m-1.meta", "m-1.index", "m-1.data-00000-of-00002", "m-1.data-00001-of-00002", "m-1.data-00000-of-100000"}
	stay := []string{"m-10.index", "m-1.data-x", "m-1.data-00000-of-0002", "m-1.index.bak", "m-1", "xm-1.index", "m-1.data-00000-of-00001.tempstate1"}
	for _, name := range slices.Concat(gone, stay) {
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	sessiontest.MustNoErr(t, os.Mkdir(filepath.Join(dir, "m-2.index"), 0o777))
	sessiontest.MustNoErr(t, ckptdir.RemoveFiles(filepath.Join(dir, "m-1"), nil))
	sessiontest.MustNoErr(t, ckptdir.RemoveFiles(filepath.Join(dir, "m-2"), nil))
	sessiontest.MustNoErr(t, ckptdir.RemoveFiles(filepath.Join(dir, "m-3"), nil))
	slices.Sort(stay)
	left := sessiontest.Files(t, dir, "*")
	slices.Sort(left)
	want := append(slices.Clone(stay), "m-2.index")
	slices.Sort(want)
	if diff := cmp.Diff(left, want); diff != "" {
		t.Errorf("left (-got +want):\n%s", diff)
	}
}

func TestSA10Prefix(t *testing.T) {
	tests := []struct {
		step int64
		pad  bool
		want string
	}{
		{0, false, "m-0"}, {42, false, "m-42"}, {42, true, "m-00000042"}, {1234567, true, "m-01234567"}, {123456789, true, "m-123456789"},
		{session.NoStep, false, "m"}, {session.NoStep, true, "m"},
	}
	for _, tt := range tests {
		got := (&Saver{PadStep: tt.pad}).prefixAt("m", tt.step)
		if got != tt.want {
			t.Errorf("prefixAt(%d) with PadStep %v = %q; want %q", tt.step, tt.pad, got, tt.want)
		}
		if back := stepOf(got); back != tt.step {
			t.Errorf("stepOf(%q) = %d; want %d", got, back, tt.step)
		}
	}
	for _, name := range []string{"m", "m-", "m-x", "m-1x", "m--", "m-" + strconv.Itoa(1<<62) + "000"} {
		if got := stepOf(name); got != session.NoStep {
			t.Errorf("stepOf(%q) = %d; want none", name, got)
		}
	}
}

// A Saver that keeps all lists few of them. After a damaged one it is the turn of
// the one before, not of that with which the run had begun.
func TestFindWithUnlistedCheckpoints(t *testing.T) {
	for _, tt := range []struct {
		name   string
		format Format
		shards int
	}{{"V2", FormatV2, 1}, {"V1, two files", FormatV1, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := &Saver{MaxToKeep: -1, Format: tt.format, Shards: tt.shards}, t.TempDir()
			sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1, 2), "w": sessiontest.Vector[float32](3)})
			first := save(t, s, sess, filepath.Join(dir, "m"), 1)
			resumed := &Saver{MaxToKeep: -1, Format: tt.format, Shards: tt.shards}
			resumed.RecoverLastCheckpoints([]string{first})
			want := []string{first}
			for step := range int64(3) {
				want = append(want, save(t, resumed, sess, filepath.Join(dir, "m"), 2+step))
			}
			slices.Reverse(want)
			found, err := resumed.Find(dir, "m")
			sessiontest.MustNoErr(t, err)
			if diff := cmp.Diff(want, found.Prefixes); diff != "" {
				t.Errorf("order of the checkpoints (-want +got):\n%s", diff)
			}
			to, err := Quarantine(nil, want[0], time.Now())
			sessiontest.MustNoErr(t, err)
			if n := len(sessiontest.Files(t, to, "*")); to == "" || n < 2 || layout.Exists(want[0]) {
				t.Errorf("moved %d files to %q", n, to)
			}
		})
	}
}
