//go:build unix

package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// writeSteps writes an events file of a program, with an event for each step.
func writeSteps(t *testing.T, name string, steps ...int64) {
	t.Helper()
	childtest.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
	f, err := os.Create(name)
	childtest.Must(t, err)
	w := tfevents.NewEventsWriter(f, nil)
	for _, step := range steps {
		childtest.Must(t, w.WriteEvent(&tfpb.Event{Step: step}))
	}
	childtest.Must(t, f.Close())
}

// TestEventsFarAheadOfCheckpoint has a program that keeps its best alone, so that a new
// trainerd, or a new chief, has nothing but a checkpoint from long before the steps that were
// reported: a restart is marked among the events that count these, and not among others.
func TestEventsFarAheadOfCheckpoint(t *testing.T) {
	const name = "events.out.tfevents.0946684000.h"
	for _, tc := range []struct {
		name             string
		nodes, node      int
		inLogdir, silent bool // the program writes into the logdir itself; it reports nothing
		want             []string
	}{
		{name: "one machine", want: []string{"tb"}},
		{name: "one machine, events in the logdir", inLogdir: true, want: []string{".", "tb"}},
		{name: "another chief, the first", nodes: 2, node: 0, want: []string{"tb"}},
		{name: "another chief, the second", nodes: 2, node: 1, want: []string{"tb"}},
		{name: "no reports", silent: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				for step := 1; step <= 50 && !tc.silent; step++ {
					p.say("step=%d loss=1", step)
				}
				return 0
			})
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-5"), "weights")
			run := func() {
				t.Helper()
				if _, err := sv.Run(t.Context()); err != nil {
					t.Fatalf("%s: %v", tc.name, err)
				}
			}
			run()
			writeSteps(t, filepath.Join(sv.Logdir, "tb", name), 1, 50)
			writeSteps(t, filepath.Join(sv.Logdir, "iterations", name), 16, 800)
			if tc.inLogdir {
				writeSteps(t, filepath.Join(sv.Logdir, name), 1, 50)
			}
			sv.Nodes, sv.Node = tc.nodes, tc.node
			run() // as another process does: a run shares nothing with the one before
			got := slices.DeleteFunc(marksBelow(t, sv.Logdir), func(dir string) bool { return strings.HasPrefix(dir, ownRun) })
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s: marks in %v, want %v; log:\n%s", tc.name, got, tc.want, log)
			}
		})
	}
}

// TestFarFromTheReports has events that count something else than the reports do: their steps are more than four times
// as far, in this run and in those before. Where nothing was reported, nobody knows.
func TestFarFromTheReports(t *testing.T) {
	for _, tc := range []struct {
		highest, reached, before int64
		want                     bool
	}{
		{5, -1, 0, false}, {5, 0, 0, false}, {5, 1, 0, true}, {4, 1, 0, false}, {5, 2, 0, false},
		{9, 1, 2, true}, {8, 1, 2, false}, {9, 3, 2, false},
	} {
		sv, _ := simulate(t, nil)
		writeSteps(t, filepath.Join(sv.Logdir, "tb", "events.out.tfevents.0946684000.h"), 1, tc.highest)
		r := sv.newRun(t.Context())
		childtest.Must(t, r.acquire())
		r.events.scalar(t.Context(), "loss", 1, tc.before)
		r.events.flush(t.Context())
		if got := r.countsOther("tb", tc.reached); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
		r.close()
	}
}

// TestNewestEventFiles has a folder with more events files than are looked at, and with what is none. How far the steps
// are is what the newest says that has any.
func TestNewestEventFiles(t *testing.T) {
	sv, _ := simulate(t, nil)
	r := sv.newRun(t.Context())
	childtest.Must(t, r.acquire())
	defer r.close()
	at := func(second int) string {
		return filepath.Join(sv.Logdir, "tb", fmt.Sprintf("events.out.tfevents.%d.h", 1_700_000_000+second))
	}
	for second := range mostEventFiles + 2 {
		writeSteps(t, at(second), 50)
	}
	writeSteps(t, at(30), 1)
	writeSteps(t, at(31))
	childtest.Must(t, os.Mkdir(at(32), 0o777))
	childtest.Write(t, filepath.Join(sv.Logdir, "tb", "notes.txt"), "none")
	var want []string
	for _, second := range append([]int{31, 30}, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4) {
		want = append(want, at(second))
	}
	if got := r.eventFilesIn("tb", isForeignEvents); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := r.highestStep("tb"); got != 1 {
		t.Errorf("the highest step is %d", got)
	}
}
