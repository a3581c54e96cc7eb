//go:build unix

package child

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestLinkedEvents has a program whose events are reached by symbolic links, and that is
// killed once: a restart is marked wherever TensorBoard reads them, but nothing outside the
// logdir is touched.
func TestLinkedEvents(t *testing.T) {
	const old, next = "events.out.tfevents.1700000000.h", "events.out.tfevents.1700000009.h"
	base := t.TempDir()
	outside := filepath.Join(base, "elsewhere")
	for name, c := range map[string]struct {
		links  map[string]string // below the logdir, to what
		writes string            // where the program writes
		marked []string          // folders
		says   bool              // that a link leads out
	}{
		"folder, relative":  {map[string]string{"tb": "real"}, "real", []string{"real"}, false},
		"folder, absolute":  {map[string]string{"tb": "LOGDIR/real"}, "real", []string{"real"}, false},
		"hidden folder":     {map[string]string{"tb": ".cache/run"}, ".cache/run", []string{".cache/run"}, false},
		"itself":            {map[string]string{"tb/loop": "../tb", "tb/top": "LOGDIR"}, "tb", []string{"tb"}, false},
		"files":             {map[string]string{"tb/" + old: "../real/" + old, "tb/" + next: "../real/" + next}, "real", []string{"real", "tb"}, false},
		"file outside":      {map[string]string{"tb/" + old: outside + "/" + old}, "../elsewhere", []string{"tb"}, false},
		"folder outside":    {map[string]string{"tb": outside}, "../elsewhere", nil, true},
		"outside, not ours": {map[string]string{"data": "/usr/share"}, "real", []string{"real"}, false},
		"to nothing":        {map[string]string{"tb": "nowhere"}, "real", []string{"real"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			sv, _ := supervise(t, "steps 1 2;write ckpt-2 W/"+old+";steps 3 5;exit 1|write W/"+next+";resume 6")
			sv.Logdir = filepath.Join(base, strings.ReplaceAll(name, " ", "-"))
			sv.Env[0] = strings.ReplaceAll(sv.Env[0], "W/", c.writes+"/")
			log := newScreen()
			sv.Log = logTo(log)
			childtest.Must(t, os.MkdirAll(filepath.Join(sv.Logdir, c.writes), 0o777))
			for link, to := range c.links {
				link = filepath.Join(sv.Logdir, link)
				childtest.Must(t, os.MkdirAll(filepath.Dir(link), 0o777))
				childtest.Must(t, os.Symlink(strings.ReplaceAll(to, "LOGDIR", sv.Logdir), link))
			}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var marked []string
			childtest.Must(t, filepath.WalkDir(base, func(name string, _ os.DirEntry, err error) error {
				if strings.Contains(name, purgeInfix) {
					below, _ := filepath.Rel(sv.Logdir, filepath.Dir(name))
					marked = append(marked, below)
					childtest.Must(t, os.Remove(name))
				}
				return err
			}))
			if !slices.Equal(marked, c.marked) {
				t.Errorf("marks in %v, want %v", marked, c.marked)
			}
			if says := strings.Count(log.String(), "leads out of the logdir"); (says == 1) != c.says {
				t.Errorf("it is said %d times:\n%s", says, log)
			}
		})
	}
}

// TestLinkOutIsSaidOnce has a program whose events are in a folder out of the logdir, and that is
// started again more than once.
func TestLinkOutIsSaidOnce(t *testing.T) {
	sv, _ := supervise(t, "steps 1 2;write ckpt-2 tb/events.out.tfevents.1.theirs;exit 1|resume 4;exit 1|resume 6")
	log := newScreen()
	sv.Log = logTo(log)
	childtest.Must(t, os.MkdirAll(sv.Logdir, 0o777))
	childtest.Must(t, os.Symlink(t.TempDir(), filepath.Join(sv.Logdir, "tb")))
	if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 3 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if says := strings.Count(log.String(), "leads out of the logdir to a folder with events"); says != 1 {
		t.Errorf("it is said %d times:\n%s", says, log)
	}
}

// TestEventsOfOtherSteps has a program that is started again, with events in several folders: a
// restart is not marked where the steps are not those that it reports, as the iterations of
// Keras are not, which reports epochs: TensorBoard would drop them all.
func TestEventsOfOtherSteps(t *testing.T) {
	const old, next = "events.out.tfevents.1700000000.h", "events.out.tfevents.1700000009.h"
	sv, _ := supervise(t, "steps 1 5;write ckpt-5;exit 1|resume 6;exit 1|resume 9")
	log := newScreen()
	sv.Log = logTo(log)
	for name, steps := range map[string][]int64{
		"epochs/" + old: {0, 1, 4}, "ahead/" + old: {1, 20}, "iterations/" + old: {0, 16, 80}, "both/" + old: {1, 2, 21},
		"begun/" + old: {16, 80}, "begun/" + next: nil, "none/" + old: nil,
	} {
		name = filepath.Join(sv.Logdir, name)
		childtest.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		f, err := os.Create(name)
		childtest.Must(t, err)
		w := tfevents.NewEventsWriter(f, nil)
		for _, step := range steps {
			childtest.Must(t, w.WriteEvent(&tfpb.Event{Step: step}))
		}
		childtest.Must(t, f.Close())
	}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	marked := map[string]bool{}
	for _, name := range childtest.Below(t, sv.Logdir) {
		if strings.Contains(name, purgeInfix) {
			marked[filepath.Dir(name)] = true
		}
	}
	if got := slices.Sorted(maps.Keys(marked)); !slices.Equal(got, []string{"ahead", "epochs", "none"}) {
		t.Errorf("marks in %v", got)
	}
	if got := strings.Count(log.String(), "count other steps"); got != 3 {
		t.Errorf("it is said %d times, want once for each folder:\n%s", got, log)
	}
}

// TestLinkedLogdir has a logdir that is a link itself: what is in it is marked as ever.
func TestLinkedLogdir(t *testing.T) {
	const old = "tb/events.out.tfevents.1700000000.h"
	sv, _ := supervise(t, "steps 1 2;write ckpt-2 "+old+";exit 1|resume 6")
	real := filepath.Join(t.TempDir(), "real")
	childtest.Must(t, os.MkdirAll(filepath.Join(real, "tb"), 0o777))
	childtest.Must(t, os.Symlink(filepath.Join(real, "tb"), filepath.Join(real, "linked")))
	childtest.Must(t, os.Symlink(real, sv.Logdir))
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(real, old+purgeInfix+"*"))
	if err != nil || len(found) != 1 {
		t.Errorf("marks %v, %v", found, err)
	}
}
