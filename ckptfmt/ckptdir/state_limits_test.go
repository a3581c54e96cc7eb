package ckptdir

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
)

// A state file is refused as one that TensorFlow ignores if it is too large, or
// names what no system has; just below these limits it is read.
func TestReadStateLimits(t *testing.T) {
	long := strings.Repeat("a", maxPath)
	text := func(current, other string) string {
		return fmt.Sprintf("model_checkpoint_path: %q\nall_model_checkpoint_paths: %q\n", current, other)
	}
	for _, tt := range []struct {
		name, text string
		refused    bool
	}{
		{"long names", text(long, long), false},
		{"current one too long", text(long+"a", "b"), true},
		{"other one too long", text("a", long+"a"), true},
		{"large", text("a", "b") + strings.Repeat("#", maxStateSize-len(text("a", "b"))), false},
		{"too large", text("a", "b") + strings.Repeat("#", maxStateSize-len(text("a", "b"))+1), true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, StateName), []byte(tt.text), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := ReadState(dir, nil)
		if tt.refused && !errors.Is(err, ErrState) || !tt.refused && (err != nil || len(s.AllModelCheckpointPaths) != 1) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What is wrong with a text is said with its line, also at the end of the file.
func TestParseStateErrors(t *testing.T) {
	for text, want := range map[string]string{
		"model_checkpoint_path 'a'":               `line 1: expected ":", found "'a'"`,
		"\nmodel_checkpoint_path: 'a\n":           "line 2: string has no end on its line",
		"model_checkpoint_path: '\\xg'":           `line 1: escape \x has no digits`,
		"last_preserved_timestamp: 01":            `line 1: number "01" begins with 0`,
		"last_preserved_timestamp: x":             `line 1: expected a number, found "x"`,
		"model_checkpoint_path:\n\n":              `line 3: expected a string, found ""`,
		"model_checkpoint_path:":                  `line 1: expected a string, found ""`,
		"all_model_checkpoint_timestamps: [1\n,x": `line 2: expected a number, found "x"`,
		"\xff":  "byte 0",
		"a\xff": "byte 1",
	} {
		_, err := ParseState([]byte(text))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want ... %s", text, err, want)
		}
	}
}

// A state without a checkpoint is not written, and the caller's is not changed.
func TestUpdateStateLeavesItsArgument(t *testing.T) {
	dir := t.TempDir()
	for _, s := range []*tfpb.CheckpointState{nil, {}, {AllModelCheckpointPaths: []string{"a"}}} {
		if err := UpdateState(dir, s, nil); !errors.Is(err, ErrEmptyState) {
			t.Errorf("%v: %v, want ErrEmptyState", s, err)
		}
	}
	s := &tfpb.CheckpointState{ModelCheckpointPath: filepath.Join(dir, "m-1")}
	if err := UpdateState(dir, s, &StateOptions{RelativePaths: true}); err != nil {
		t.Fatal(err)
	}
	if s.ModelCheckpointPath != filepath.Join(dir, "m-1") || s.AllModelCheckpointPaths != nil {
		t.Errorf("the argument became %v", s)
	}
	if got := readText(t, dir); got != "model_checkpoint_path: \"m-1\"\nall_model_checkpoint_paths: \"m-1\"\n" {
		t.Errorf("wrote %q", got)
	}
}

// An absolute name of the state file is taken as it is.
func TestStateFileElsewhere(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	o := &StateOptions{Name: filepath.Join(other, "state")}
	if err := UpdateState(dir, &tfpb.CheckpointState{ModelCheckpointPath: "m-1"}, o); err != nil {
		t.Fatal(err)
	}
	s, err := ReadState(dir, o)
	if err != nil || s.ModelCheckpointPath != filepath.Join(dir, "m-1") || len(fileNames(t, dir)) != 0 {
		t.Errorf("%v, %v; files %q", s, err, fileNames(t, dir))
	}
}

// Numbers in the file that cannot be a time are none.
func TestTimeOf(t *testing.T) {
	for _, stamp := range []float64{0, -1, 1 << 40, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if at, ok := timeOf(stamp); ok || !at.IsZero() {
			t.Errorf("%v is taken for %v", stamp, at)
		}
	}
	for stamp, want := range map[float64]time.Time{0.5: time.Unix(0, 5e8), 1<<40 - 1: time.Unix(1<<40-1, 0), 1.25: time.Unix(1, 25e7)} {
		if at, ok := timeOf(stamp); !ok || !at.Equal(want) {
			t.Errorf("%v is taken for %v, %v", stamp, at, ok)
		}
	}
}

// A state file that cannot be read, for it is a link to itself, is an error of
// everything that has to change it, and nothing is removed.
func TestUnreadableState(t *testing.T) {
	dir := logdir(t)
	file, prefix := filepath.Join(dir, StateName), filepath.Join(dir, "model.ckpt-30")
	if err := errors.Join(os.Remove(file), os.Symlink(file, file)); err != nil {
		t.Skip(err)
	}
	before := fileNames(t, dir)
	for what, err := range map[string]error{
		"Remove": Remove(prefix, nil), "Forget": Forget(prefix, nil), "Select": Select(prefix, nil),
	} {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := fileNames(t, dir); len(after) != len(before) {
		t.Errorf("files %q became %q", before, after)
	}
	if err := Move(prefix, filepath.Join(dir, "best-30")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Move: %v", err)
	}
	if err := verifyBundle(t, prefix); err != nil {
		t.Error(err)
	}
}
