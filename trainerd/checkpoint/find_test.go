package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// checkpointsOf makes files as those of checkpoints, in a new directory, with a
// state file, unless it is "". Those whose names end with + are newer than that.
func checkpointsOf(t *testing.T, state string, names ...string) string {
	t.Helper()
	dir := sessiontest.MemoryDir(t)
	now := time.Now()
	if state != "" {
		name := filepath.Join(dir, "checkpoint")
		sessiontest.MustNoErr(t, os.WriteFile(name, []byte(state), 0o666))
		sessiontest.MustNoErr(t, os.Chtimes(name, now, now))
	}
	for _, name := range names {
		prefix, after := strings.CutSuffix(name, "+")
		at := now.Add(-time.Hour)
		if after {
			at = now.Add(time.Hour)
		}
		for _, suffix := range []string{".index", ".data-00000-of-00001"} {
			file := filepath.Join(dir, prefix+suffix)
			sessiontest.MustNoErr(t, os.WriteFile(file, []byte("x"), 0o666))
			sessiontest.MustNoErr(t, os.Chtimes(file, at, at))
		}
	}
	return dir
}

func stateOf(current string, all ...string) string {
	return string(ckptdir.FormatState(&tfpb.CheckpointState{ModelCheckpointPath: current, AllModelCheckpointPaths: all}))
}

// The order in which a start tries checkpoints.
func TestFindOrder(t *testing.T) {
	tests := []struct {
		name                 string
		state                string
		files                []string
		want, newer, orphans []string
		stateErr             bool
	}{
		{name: "nothing"},
		{name: "no state file", files: []string{"m-1", "m-10", "m-9", "n-11", "m"}, want: []string{"m-10", "m-9", "m-1", "m"}},
		{name: "a state file that is no text", state: "\x00\x01", files: []string{"m-1", "m-2"}, want: []string{"m-2", "m-1"}, stateErr: true},
		{name: "listed, newest first", state: stateOf("m-3", "m-1", "m-2", "m-3"), files: []string{"m-1", "m-2", "m-3"}, want: []string{"m-3", "m-2", "m-1"}},
		{name: "listed in the order of time, not of steps", state: stateOf("m-5", "m-9", "m-2", "m-5"), files: []string{"m-2", "m-5", "m-9"}, want: []string{"m-5", "m-2", "m-9"}},
		{name: "listed twice", state: stateOf("m-3", "m-1", "m-1", "m-3"), files: []string{"m-1", "m-3"}, want: []string{"m-3", "m-1"}},
		{name: "somebody has gone back", state: stateOf("m-2", "m-1", "m-2", "m-3"), files: []string{"m-1", "m-2", "m-3"}, want: []string{"m-2", "m-1"}, newer: []string{"m-3"}},
		{name: "gone back to the first", state: stateOf("m-1", "m-1", "m-2"), files: []string{"m-1", "m-2"}, want: []string{"m-1"}, newer: []string{"m-2"}},
		{name: "the current one is not in the list", state: stateOf("m-3", "m-1", "m-2"), files: []string{"m-1", "m-2", "m-3"}, want: []string{"m-3", "m-2", "m-1"}},
		{name: "not listed", state: stateOf("m-9", "m-3", "m-9"), files: []string{"m-1", "m-3", "m-5", "m-9"}, want: []string{"m-9", "m-5", "m-3", "m-1"}},
		{name: "not listed, one without a step", state: stateOf("m-9", "m-3", "m-9"), files: []string{"m", "m-3", "m-5", "m-9"}, want: []string{"m-9", "m-5", "m-3", "m"}},
		{name: "the current one is gone", state: stateOf("m-9", "m-9"), files: []string{"m-3"}, want: []string{"m-9", "m-3"}},
		{name: "of the name that the state file has", state: stateOf("x-2", "x-1", "x-2"), files: []string{"x-1", "x-2", "x-0", "m-1"}, want: []string{"x-2", "x-1", "x-0"}},
		{name: "written, and killed before it was listed", state: stateOf("m-3", "m-3"), files: []string{"m-3", "m-4+", "m-5"}, want: []string{"m-3"}, newer: []string{"m-5", "m-4"}, orphans: []string{"m-4"}},
		{name: "listed, and newer than the list", state: stateOf("m-3", "m-3", "m-4"), files: []string{"m-3", "m-4+"}, want: []string{"m-3"}, newer: []string{"m-4"}},
		{name: "of the same step", state: stateOf("m-3", "m-3"), files: []string{"m-3", "m-00000003+"}, want: []string{"m-3", "m-00000003"}},
		{name: "a previous one of the same name", state: stateOf("m", "m"), files: []string{"m", "m.previous"}, want: []string{"m", "m.previous"}},
		{name: "only the previous one", state: stateOf("m-3", "m-2", "m-3"), files: []string{"m-2", "m-3.previous"}, want: []string{"m-3", "m-3.previous", "m-2"}},
		{name: "previous ones, no state file", files: []string{"m-2", "m-2.previous", "m-1"}, want: []string{"m-2", "m-2.previous", "m-1"}},
		{name: "not listed, after a previous one", state: stateOf("m-9", "m-3", "m-9"), files: []string{"m-3", "m-3.previous", "m-5", "m-9"}, want: []string{"m-9", "m-5", "m-3", "m-3.previous"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := checkpointsOf(t, tt.state, tt.files...)
			found, err := new(Saver).Find(dir, "m")
			sessiontest.MustNoErr(t, err)
			for what, lists := range map[string][2][]string{"order": {found.Prefixes, tt.want}, "newer": {found.Newer, tt.newer}, "orphans": {found.orphans, tt.orphans}} {
				got := slices.Clone(lists[0])
				for i := range got {
					got[i] = filepath.Base(got[i])
				}
				if diff := cmp.Diff(got, lists[1], cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-got +want):\n%s", what, diff)
				}
			}
			if found.IsEmpty() != (len(tt.want) == 0) || (found.StateErr != nil) != tt.stateErr || found.State != filepath.Join(dir, "checkpoint") {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestFindFails(t *testing.T) {
	found, err := new(Saver).Find(filepath.Join(t.TempDir(), "none"), "m")
	if err != nil || !found.IsEmpty() {
		t.Errorf("no directory: %v, %v", found, err)
	}
	dir := t.TempDir()
	sessiontest.MustNoErr(t, os.Mkdir(filepath.Join(dir, "checkpoint"), 0o777))
	if found, err := new(Saver).Find(dir, "m"); err == nil && found.StateErr == nil {
		t.Error("a folder in place of the state file is taken for none")
	}
	file := filepath.Join(dir, "file")
	sessiontest.MustNoErr(t, os.WriteFile(file, nil, 0o666))
	if _, err := new(Saver).Find(file, "m"); err == nil {
		t.Error("a file is searched for checkpoints")
	}
}

// A Saver takes over what the run before had, without what is damaged or not
// there, and with what that had no time to list.
func TestRecover(t *testing.T) {
	dir := checkpointsOf(t, stateOf("m-3", "m-0", "m-1", "m-2", "m-3"), "m-1", "m-2", "m-3", "m-4+", "m-5")
	at := func(step int) string { return filepath.Join(dir, fmt.Sprint("m-", step)) }
	s := new(Saver)
	found, err := s.Find(dir, "m")
	sessiontest.MustNoErr(t, err)
	s.Recover(found, []*Error{{Prefix: at(3)}}, at(2))
	if diff := cmp.Diff(s.LastCheckpoints(), []string{at(4), at(1), at(2)}); diff != "" {
		t.Errorf("looks after (-got +want):\n%s", diff)
	}
	if s.kept[0].saved != s.lastPreserved {
		t.Errorf("the one that was never current may be preserved: %v, %v", s.kept[0].saved, s.lastPreserved)
	}
	if s.kept[1].saved == s.lastPreserved {
		t.Error("a listed one is taken for one that was never current")
	}
	dir = checkpointsOf(t, "", "m-1", "m-2")
	found, err = s.Find(dir, "m")
	sessiontest.MustNoErr(t, err)
	s.Recover(found, nil, at(2))
	if diff := cmp.Diff(s.LastCheckpoints(), []string{at(2)}); diff != "" {
		t.Errorf("without a state file, looks after (-got +want):\n%s", diff)
	}
}

// Times come from a state file that has one for each checkpoint.
func TestRecoverTimes(t *testing.T) {
	saved := []float64{1000, 2000.5}
	for _, tt := range []struct {
		times []float64
		last  float64
		kept  bool // the times of the state file
	}{{saved, 1500, true}, {saved, 0, true}, {saved[:1], 0, false}, {nil, 1500, false}, {[]float64{1e300, 2000.5}, 1e300, true}} {
		dir := checkpointsOf(t, "", "m-1", "m-2")
		state := &tfpb.CheckpointState{ModelCheckpointPath: "m-2", AllModelCheckpointPaths: []string{"m-1", "m-2"},
			AllModelCheckpointTimestamps: tt.times, LastPreservedTimestamp: tt.last}
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, "checkpoint"), ckptdir.FormatState(state), 0o666))
		s := new(Saver)
		found, err := s.Find(dir, "m")
		sessiontest.MustNoErr(t, err)
		s.Recover(found, nil, found.Prefixes[0])
		if got := s.kept[1].saved.Equal(time.UnixMilli(2000500)); got != tt.kept {
			t.Errorf("times %v: saved %v", tt.times, s.kept[1].saved)
		}
		switch {
		case tt.last == 1500 && tt.kept && !s.lastPreserved.Equal(time.Unix(1500, 0)):
			t.Errorf("last preserved %v", s.lastPreserved)
		case tt.last == 0 && s.lastPreserved.Before(time.Now().Add(-time.Hour)):
			t.Errorf("the grid begins at %v", s.lastPreserved)
		}
	}
}

// A time that no clock shows is none.
func TestUnixSeconds(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, s := range []float64{nan, 1e300, -1e300, 9.3e9, -9.3e9, 1e10} {
		if got := fromUnixSeconds(s); !got.IsZero() {
			t.Errorf("%v: %v", s, got)
		}
	}
	for _, s := range []float64{0, 1.5, -1.5, 9.2e9, -9.2e9} {
		if got := unixSeconds(fromUnixSeconds(s)); got != s {
			t.Errorf("%v becomes %v", s, got)
		}
	}
}

// What cannot be told of a checkpoint keeps it out of the list.
func TestRecoverLastCheckpoints(t *testing.T) {
	dir := checkpointsOf(t, "", "m-1", "m-2")
	one, two := filepath.Join(dir, "m-1"), filepath.Join(dir, "m-2")
	s := new(Saver)
	s.RecoverLastCheckpoints([]string{one, filepath.Join(dir, "none"), two, one})
	if diff := cmp.Diff(s.LastCheckpoints(), []string{one, two}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	t.Chdir(dir)
	s.RecoverLastCheckpoints([]string{"m-2", two})
	if diff := cmp.Diff(s.LastCheckpoints(), []string{two}); diff != "" {
		t.Errorf("relative (-got +want):\n%s", diff)
	}
	if _, err := checkpointTime(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("time of none: %v", err)
	}
	if _, err := checkpointTime(filepath.Join(dir, "m-1.index", "below")); err == nil {
		t.Error("time of one below a file")
	}
}

// The Saver follows its checkpoints into another folder, and forgets what is not
// there.
func TestMoveTo(t *testing.T) {
	from := checkpointsOf(t, "", "m-1", "m-2", "m-3")
	to := checkpointsOf(t, "", "m-2", "m-3")
	s := &Saver{}
	s.RecoverLastCheckpoints([]string{filepath.Join(from, "m-1"), filepath.Join(to, "m-2"), filepath.Join(from, "m-3")})
	s.pendingDelete, s.last = []stored{{prefix: filepath.Join(from, "m-0")}}, filepath.Join(from, "m-3")
	s.rotation.keepForever(stored{prefix: filepath.Join(from, "m-0")}, "pinned")
	s.MoveTo(from, to)
	if diff := cmp.Diff(s.LastCheckpoints(), []string{filepath.Join(to, "m-3")}); diff != "" {
		t.Errorf("looks after (-got +want):\n%s", diff)
	}
	if len(s.pendingDelete) > 0 || s.last != "" || len(s.outside) > 0 || s.parent() != "" {
		t.Errorf("names of the old folder are left: %+v", s)
	}
	t.Chdir(to)
	s.MoveTo(to, "")
	if got := s.LastCheckpoints(); len(got) > 0 {
		t.Errorf("looks after %v in no folder", got)
	}
}
