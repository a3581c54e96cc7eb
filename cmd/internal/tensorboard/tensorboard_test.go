package tensorboard

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fake puts a program into PATH that prints its arguments and the data server
// that it finds, instead of TensorBoard.
func fake(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$@\"\necho \"$" + BinaryVariable + "\"\nfor a in \"$@\"; do case $a in --logdir=*) ls \"${a#--logdir=}\";; esac; done\n"
	if err := os.WriteFile(filepath.Join(dir, "tensorboard"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestRun(t *testing.T) {
	fake(t)
	logs := t.TempDir()
	for _, dir := range []string{"a/train", "b/train"} {
		if err := os.MkdirAll(filepath.Join(logs, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	c := &Command{Logdirs: []string{logs}, Args: []string{"--port=1"}, DataServer: "/bin/tfevents", Stdout: &out, Stderr: &out}
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := "--logdir=" + logs + " --load_fast=true --port=1\n/bin/tfevents\na\nb\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	out.Reset()
	c.Logdirs = []string{filepath.Join(logs, "a", "train"), filepath.Join(logs, "b", "train")}
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(out.String(), "\n"); !slices.Equal(lines[2:], []string{"b-train", "train", ""}) {
		t.Errorf("the links are %q", lines[2:])
	}
}

func TestNamedDirs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"logs/one", "logs/two", "odd:name"} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		want []string // links; nil for the directory itself
	}{
		{[]string{"logs/one"}, nil},
		{[]string{"odd:name"}, nil},
		{[]string{"a:logs/one"}, []string{"a"}},
		{[]string{"a:logs/one,b:logs/two"}, []string{"a", "b"}},
		{[]string{"a:logs/one", "logs/two", "odd:name"}, []string{"a", "odd:name", "two"}},
	} {
		got, cleanup, err := oneDir(tc.args)
		if err != nil {
			t.Fatal(tc.args, err)
		}
		entries, err := os.ReadDir(got)
		cleanup()
		if err != nil {
			t.Fatal(tc.args, err)
		}
		var links []string
		for _, e := range entries {
			links = append(links, e.Name())
		}
		if tc.want == nil && got != filepath.Join(dir, tc.args[0]) || tc.want != nil && !slices.Equal(links, tc.want) {
			t.Errorf("%q: %s with %q; want %q", tc.args, got, links, tc.want)
		}
	}
	if _, _, err := oneDir([]string{"a:logs/one", "a:logs/two"}); err == nil || !strings.Contains(err.Error(), "name a") {
		t.Errorf("two of one name: %v", err)
	}
}

func TestRunWithoutTensorBoard(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Run(t.Context(), &Command{Logdirs: []string{"logs"}, DataServer: "/bin/tfevents"})
	if err == nil || !strings.Contains(err.Error(), "pip install tensorboard") {
		t.Errorf("error %v does not say what to install", err)
	}
}
