package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// TestNamesOfDirectories has directories whose names end or mislead the Python loader's
// walk, next to others that do no harm.
func TestNamesOfDirectories(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"run/events.out.tfevents.1", "run/tfevents/e.tfevents.1", "apart/tfevents/e.tfevents.1"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"run/tfevents": "is a directory, but named as an events file"}
	for link, to := range map[string]string{"apart/up": "..", "apart/next": "../run", "nowhere": "gone"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	want["apart/up"] = "is a link to a directory that it lies in"
	if os.Mkdir(filepath.Join(root, "caf\xe9"), 0o777) == nil && runtime.GOOS == "linux" {
		want["caf\xe9"] = "has a name that is not UTF-8"
	}
	c := treeChecker{ctx: t.Context(), runs: regexp.MustCompile(""), root: root}
	if err := filepath.WalkDir(root, c.look); err != nil {
		t.Fatal(err)
	}
	for _, f := range c.found {
		name, err := filepath.Rel(root, f.File)
		if words := want[filepath.ToSlash(name)]; err != nil || words == "" || !strings.Contains(f.Problem, words) {
			t.Errorf("%q: %s", f.File, f.Problem)
		}
		delete(want, filepath.ToSlash(name))
	}
	if len(want) > 0 {
		t.Errorf("not found: %q", want)
	}
}

// TestNamesBelowLink has a link as the log directory.
func TestNamesBelowLink(t *testing.T) {
	dir := t.TempDir()
	writeImages(t, filepath.Join(dir, "events.out.tfevents.1"), 1)
	if err := os.Mkdir(filepath.Join(dir, "tfevents"), 0o777); err != nil {
		t.Fatal(err)
	}
	writeImages(t, filepath.Join(dir, "tfevents", "events.out.tfevents.1"), 1)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"tfevents", "check", link}, nil, &out, &errs); code == exitOK || !strings.Contains(out.String(), "is a directory, but named as an events file") {
		t.Errorf("exit code %d, %s, %s", code, &out, &errs)
	}
}

// writeImages writes an events file with an image at each step.
func writeImages(t *testing.T, name string, steps int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := tfevents.NewEventsWriter(f, nil)
	for step := range steps {
		v := &tfpb.Summary_Value{Tag: "im", Value: &tfpb.Summary_Value_Image{Image: &tfpb.Summary_Image{EncodedImageString: []byte("x")}}}
		e := &tfpb.Event{WallTime: 1, Step: int64(step), What: &tfpb.Event_Summary{Summary: summary.New(v)}}
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
