package trainerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/report"
	"github.com/trainerd/trainerd/trainerd/session"
)

// The state file can be edited by hand, and by hands that mean no good. What it
// says never makes a run delete a file that is not a checkpoint's in the logdir,
// nor stop.
func TestHostileStateFile(t *testing.T) {
	trained := trainedDir(t)
	for name, entry := range map[string]string{
		"parent":                    "../victim/model.ckpt-1",
		"absolute":                  "VICTIM/model.ckpt-1",
		"parent behind a folder":    "sub/../../victim/model.ckpt-1",
		"folder that is a link":     "link/model.ckpt-1",
		"file that is a link":       "model.ckpt-1",
		"NUL":                       "model.ckpt-1\\000",
		"line break":                "model.ckpt-1\\n../victim/model.ckpt-1",
		"pattern":                   "../victim/*",
		"the state file":            "checkpoint",
		"the events file":           "EVENTS",
		"the lock":                  logdir.LockFile,
		"the logdir":                ".",
		"nothing":                   "",
		"the root of all":           "/",
		"a name of a thousand dots": strings.Repeat(".", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			parent := sessiontest.MemoryDir(t)
			dir, victim := filepath.Join(parent, "logdir"), filepath.Join(parent, "victim")
			sessiontest.MustNoErr(t, os.CopyFS(dir, os.DirFS(trained)))
			sessiontest.MustNoErr(t, os.CopyFS(victim, os.DirFS(trained)))
			saveStep(t, victim, 1)
			sessiontest.MustNoErr(t, os.Symlink(victim, filepath.Join(dir, "link")))
			if strings.Contains(name, "file that is") {
				for _, suffix := range []string{".index", ".data-00000-of-00001"} {
					sessiontest.MustNoErr(t, os.Symlink(filepath.Join(victim, "model.ckpt-1"+suffix), filepath.Join(dir, "model.ckpt-1"+suffix)))
				}
			}
			mine := filepath.Join(dir, "notes.txt")
			sessiontest.MustNoErr(t, os.WriteFile(mine, []byte("mine"), 0o666))
			before := dirContents(t, victim)
			entry := strings.NewReplacer("VICTIM", victim, "EVENTS", "events.out.tfevents.1.host").Replace(entry)
			writeState(t, dir, fmt.Sprintf("model_checkpoint_path: \"model.ckpt-30\"\n"+
				"all_model_checkpoint_paths: \"%s\"\nall_model_checkpoint_paths: \"model.ckpt-30\"\n", entry))

			m := sessiontest.Counter()
			sv := newSupervisor(m, dir, 2)
			sv.Saver = &checkpoint.Saver{MaxToKeep: 1}
			sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 37)))
			if after := dirContents(t, victim); after != before {
				t.Errorf("the other directory was\n%s\nand is\n%s", before, after)
			}
			if got, err := os.ReadFile(mine); string(got) != "mine" {
				t.Errorf("a file of the user's: %v", err)
			}
			latest, err := ckptdir.LatestCheckpoint(dir, nil)
			if err != nil || ckptdir.StepOf(latest) != 37 {
				t.Errorf("the current checkpoint is %s, %v; want step 37", latest, err)
			}
		})
	}
}

func dirContents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range sessiontest.Files(t, dir, "*") {
		data, err := os.ReadFile(filepath.Join(dir, name))
		sessiontest.MustNoErr(t, err)
		fmt.Fprintf(&b, "%s %d\n", name, len(data))
	}
	return b.String()
}

// A state file of any size and shape is refused or read in little memory, and
// the run goes by the files in the directory.
func TestHugeStateFile(t *testing.T) {
	line := "all_model_checkpoint_paths: \"model.ckpt-10\"\n"
	for name, text := range map[string]string{
		"many entries": "model_checkpoint_path: \"model.ckpt-30\"\n" + strings.Repeat(line, 11_000),
		"too large":    strings.Repeat("#", 17<<20),
		"long name":    "model_checkpoint_path: \"" + strings.Repeat("a", 200<<10) + "\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := trainedDir(t)
			writeState(t, dir, text)
			defer membound.Check(t, len(text), 64)()
			m := sessiontest.Counter()
			sv := newSupervisor(m, dir, 0)
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
				step, err := session.ScalarInt(m.Get("global_step"))
				if step != 30 {
					t.Errorf("resumed at %d; want 30", step)
				}
				return err
			}))
		})
	}
}

// A link in the place of a file that is to be written is replaced or refused,
// never followed.
func TestLinksAreNotFollowed(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	sessiontest.MustNoErr(t, os.WriteFile(victim, []byte("mine"), 0o666))
	for _, name := range []string{"checkpoint", "model.ckpt-2.index", "model.ckpt-2.data-00000-of-00001", "model.ckpt-2.manifest.json", report.JSONName} {
		sessiontest.MustNoErr(t, os.Symlink(victim, filepath.Join(dir, name)))
	}
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 2)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 2)))
	if got, err := os.ReadFile(victim); string(got) != "mine" {
		t.Errorf("the link was followed: %q, %v", got, err)
	}
	sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, logdir.LockFile)))
	sessiontest.MustNoErr(t, os.Symlink(victim, filepath.Join(dir, logdir.LockFile)))
	if err := newSupervisor(m, dir, 2).Run(t.Context(), stepsTo(m, sv, 2)); err == nil {
		t.Error("a lock that is a link was taken")
	}
	if got, err := os.ReadFile(victim); string(got) != "mine" {
		t.Errorf("the lock's link was followed: %q, %v", got, err)
	}
}
