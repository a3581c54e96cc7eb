package trial

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestNamed has scripts and settings that name folders outside the working directory.
func TestNamed(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	work := filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RUNS_DIR", "/data/runs/env")
	t.Setenv("PWD", "/data/pwd")
	t.Setenv("TRAINERD_LOGDIR", "/data/logdir")
	t.Setenv("SOME_PATHS", "/data/a:/data/b/../..")
	for source, want := range map[string][]string{
		`out = os.path.join(os.environ["RUNS_DIR"], name)`: {"/data/runs/env"},
		`out = os.environ.get('RUNS_DIR', "out")`:          {"/data/runs/env"},
		`out := os.Getenv("RUNS_DIR")`:                     {"/data/runs/env"},
		`out <- file.path(Sys.getenv("RUNS_DIR"), "a")`:    {"/data/runs/env"},
		`out = joinpath(ENV["RUNS_DIR"], "a")`:             {"/data/runs/env"},
		`let out = std::env::var("RUNS_DIR")?;`:            {"/data/runs/env"},
		`out = path.join(process.env.RUNS_DIR, "a")`:       {"/data/runs/env"},
		`./train --out "${RUNS_DIR}"/a; ./eval $RUNS_DIR`:  {"/data/runs/env"},
		`os.environ["RUNS"]; os.environ["TRAINERD_LOGDIR"]; os.getenv("PWD"); os.getenv("HOME"); os.environ["SOME_PATHS"]`: nil,
		`SAVE_DIR = "/data/my runs/a"`:                               {"/data/my runs/a"},
		`torch.save(s, '/data/runs/last.pt')`:                        {"/data/runs"},
		`torch.save(s, f"/data/runs/{name}/step_{i}.pt")`:            {"/data/runs"},
		`torch.save(s, "/data/runs/step_%d.pt" % i)`:                 {"/data/runs"},
		`out = os.path.expanduser("~/runs")`:                         {home + "/runs"},
		`out = pathlib.Path.home() / "runs" / name`:                  {home + "/runs"},
		"out=$HOME/runs\n":                                           {home + "/runs"},
		`mkdir -p "${HOME}/runs"`:                                    {home + "/runs"},
		"output_dir: /data/runs/a # the newest\nseed: 1":             {"/data/runs/a"},
		`a, b = "/data/a", "/data/b"`:                                {"/data/a", "/data/b"},
		`p = "` + work + `/out"`:                                     nil, // looked at anyway
		`p = "` + home + `"`:                                         nil,
		`p = "~/ckpt.pt"`:                                            nil, // everything of this user
		"#!/usr/bin/env python3\nx = '/etc/hosts'":                   nil,
		`c = "~/.cache/huggingface"; t = "` + os.TempDir() + `/a.b"`: nil,
		`a = b / c; u = "http://host/data"; r = "/"`:                 nil,
	} {
		if err := os.WriteFile(filepath.Join(work, "train"), []byte(source), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := named(work, []string{"python3", "train"}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

// TestSavedInNamed checks that checkpoints are found in a folder that the script names, unless
// there are some in the folders where programs mostly save.
func TestSavedInNamed(t *testing.T) {
	base := t.TempDir()
	work, out := filepath.Join(base, "work"), filepath.Join(base, "runs")
	for _, dir := range []string{work, out} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte("save = '"+out+"'"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(filepath.Join(work, "train.py"), filepath.Join(out, "old-1.pt"))
	o := Options{Dir: work, Logdir: filepath.Join(work, "logs"), Command: []string{"python3", "train.py"}}
	before := o.roots().look()
	write(filepath.Join(out, "checkpoint-5", "model.npz"), filepath.Join(out, "checkpoint-10", "model.npz"))
	if s := o.savedSince(before); s == nil || s.Logdir != out || s.Pattern != "checkpoint-*" {
		t.Errorf("%+v, want those in %s", s, out)
	}
	write(filepath.Join(work, "last.pt"))
	if s := o.savedSince(before); s == nil || s.Logdir != work || s.Pattern != "last.pt" {
		t.Errorf("%+v, want that in %s", s, work)
	}
}
