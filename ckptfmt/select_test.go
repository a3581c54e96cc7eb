package ckptfmt

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
)

func readText(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, StateName))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSelectCheckpoint(t *testing.T) {
	dir := logdir(t)
	for _, tc := range []struct{ name, before, selected, want string }{
		{
			"an older one", "", "model.ckpt-20",
			"model_checkpoint_path: \"model.ckpt-20\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-30\"\nall_model_checkpoint_paths: \"model.ckpt-20\"\n",
		},
		{
			"with times", "model_checkpoint_path: \"model.ckpt-30\"\nall_model_checkpoint_paths: [\"model.ckpt-10\", \"model.ckpt-30\"]\nall_model_checkpoint_timestamps: [1, 2]\nlast_preserved_timestamp: 5", "model.ckpt-10",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-30\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\nall_model_checkpoint_timestamps: 2.0\nall_model_checkpoint_timestamps: 1.0\nlast_preserved_timestamp: 5.0\n",
		},
		{
			"one that is not listed", "model_checkpoint_path: \"/elsewhere/m-1\"\nall_model_checkpoint_paths: \"/elsewhere/m-1\"\nall_model_checkpoint_timestamps: 1", "model.ckpt-10",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"/elsewhere/m-1\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\n",
		},
		{
			"unreadable state", "nonsense", "model.ckpt-10",
			"model_checkpoint_path: \"model.ckpt-10\"\nall_model_checkpoint_paths: \"model.ckpt-10\"\n",
		},
	} {
		if tc.before != "" {
			if err := os.WriteFile(filepath.Join(dir, StateName), []byte(tc.before), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := SelectCheckpoint(filepath.Join(dir, tc.selected), nil); err != nil {
			t.Fatal(err)
		}
		if got := readText(t, dir); got != tc.want {
			t.Errorf("%s:\n%swant:\n%s", tc.name, got, tc.want)
		}
	}
	before := readText(t, dir)
	if err := SelectCheckpoint(filepath.Join(dir, "model.ckpt-99"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	if readText(t, dir) != before {
		t.Error("the state was changed")
	}
}

func TestNewestSound(t *testing.T) {
	dir := logdir(t)
	damage := func(name string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string, bad ...string) {
		t.Helper()
		c, unsound, err := NewestSound(t.Context(), dir)
		if want == "" {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("found %v, %v", c, err)
			}
		} else if err != nil || filepath.Base(c.Prefix) != want {
			t.Errorf("found %s, %v; want %s", c.Prefix, err, want)
		}
		var names []string
		for _, u := range unsound {
			names = append(names, filepath.Base(u.Prefix))
			var corrupt *CorruptError
			if !errors.As(u.Err, &corrupt) {
				t.Errorf("%s: %v", u.Prefix, u.Err)
			}
		}
		if strings.Join(names, " ") != strings.Join(bad, " ") {
			t.Errorf("unsound %q, want %q", names, bad)
		}
	}
	check("model.ckpt-30")
	damage("model.ckpt-30.data-00000-of-00001")
	check("model.ckpt-20", "model.ckpt-30")
	damage("model.ckpt-20.index")
	check("model.ckpt-10", "model.ckpt-30", "model.ckpt-20")
	damage("model.ckpt-10.index")
	check("", "model.ckpt-30", "model.ckpt-20", "model.ckpt-10")
}

func TestKeepRule(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var list []Checkpoint
	for i := range 7 {
		list = append(list, Checkpoint{Step: int64(i), Time: start.Add(time.Duration(i) * 20 * time.Minute), Latest: i == 1})
	}
	for _, tc := range []struct {
		rule KeepRule
		want string // a letter for each: - goes, f in force, n newest, t for its time
	}{
		{KeepRule{}, "-f-----"},
		{KeepRule{Last: 2}, "-f---nn"},
		{KeepRule{Last: 9}, "nfnnnnn"},
		{KeepRule{Every: time.Hour}, "tf-t--t"},
		{KeepRule{Last: 1, Every: 40 * time.Minute}, "tft-t-n"},
	} {
		got := ""
		kept, err := tc.rule.Apply(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kept {
			switch {
			case k.Why == "":
				got += "-"
			case strings.Contains(k.Why, "force"):
				got += "f"
			case strings.Contains(k.Why, "newest"):
				got += "n"
			default:
				got += "t"
			}
		}
		if got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.rule, got, tc.want)
		}
	}
}

func TestKeepBestAndPinned(t *testing.T) {
	dir := t.TempDir()
	for step, loss := range []Metric{3, 1, Metric(math.NaN()), 2, 5} {
		prefix := filepath.Join(dir, fmt.Sprintf("m-%d", step))
		w, err := CreateBundle(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := errors.Join(w.Add("a", Scalar(int64(step))), w.Finish()); err != nil {
			t.Fatal(err)
		}
		m := &Manifest{Step: int64(step), Metrics: map[string]Metric{"loss": loss}}
		if step == 4 {
			continue // it has no manifest
		}
		if err := WriteManifest(t.Context(), prefix, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rule KeepRule
		want string
	}{
		"smallest":    {KeepRule{Best: 2, Metric: "loss"}, "1: it is one of the best 2: loss 1, 3: it is one of the best 2: loss 2"},
		"largest":     {KeepRule{Best: 1, Metric: "loss", Largest: true}, "0: it is one of the best 1: loss 3"},
		"more":        {KeepRule{Best: 9, Metric: "loss"}, "0: it is one of the best 9: loss 3, 1: it is one of the best 9: loss 1, 3: it is one of the best 9: loss 2"},
		"pinned":      {KeepRule{Pinned: []string{"4", "m-0", filepath.Join(dir, "m-2")}}, "0: it is pinned, 2: it is pinned, 4: it is pinned"},
		"other value": {KeepRule{Best: 1, Metric: "auc"}, `ckptfmt: not found in checkpoint: no checkpoint's manifest has a value of "auc"`},
		"no such pin": {KeepRule{Pinned: []string{"m-9"}}, `ckptfmt: not found in checkpoint: the pinned checkpoint "m-9" is not there`},
	} {
		kept, err := c.rule.Apply(list)
		var got []string
		for _, k := range kept {
			if k.Why != "" {
				got = append(got, fmt.Sprintf("%d: %s", k.Step, k.Why))
			}
		}
		text := strings.Join(got, ", ")
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
}
