package tfevents

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/teamtest"
)

// TestTeams: whatever the workers of a team do, those points of each count that it has not written again. So
// they do in a merged file, and next to backups.
func TestTeams(t *testing.T) {
	for seed := range uint64(300) {
		team := teamtest.New(rand.New(rand.NewPCG(seed, 9)))
		random := rand.New(rand.NewPCG(seed, 10))
		events := make(map[string][]*tfpb.Event)
		for _, r := range team.Records {
			events[r.File] = append(events[r.File], r.Event)
			if random.IntN(50) == 0 { // somebody makes a backup
				events[r.File+".bak"] = slices.Clone(events[r.File])
			}
		}
		fsys, run := fstest.MapFS{}, Run{Name: "."}
		for name, of := range events {
			fsys[name] = fileOf(t, of...)
			run.Files = append(run.Files, name)
		}
		slices.Sort(run.Files)
		checkTeam(t, fmt.Sprint("seed ", seed), team, ReadRun(fsys, run, nil))
		var merged bytes.Buffer
		if _, err := MergeRun(&merged, fsys, run, nil); err != nil {
			t.Fatal(err)
		}
		one := fstest.MapFS{"tfevents": {Data: merged.Bytes()}}
		checkTeam(t, fmt.Sprintf("seed %d, merged", seed), team, ReadRun(one, Run{Files: []string{"tfevents"}}, nil))
	}
}

func checkTeam(t *testing.T, what string, team *teamtest.Team, x *RunData) {
	t.Helper()
	for _, tag := range teamtest.Tags {
		var got []teamtest.Point
		if s := x.Lookup(tag); s != nil {
			for p := range s.Points() {
				got = append(got, teamtest.Point{Tag: tag, Step: p.Step, WallTime: p.WallTime})
			}
		}
		if want := team.Want(tag); !slices.Equal(got, want) {
			t.Errorf("%s: %s has the points\n%v, want\n%v", what, tag, got, want)
		}
	}
}

// fileOf returns a file of just these events, their version among them.
func fileOf(t *testing.T, events ...*tfpb.Event) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := NewEventsWriter(&b, &EventsWriterOptions{Continue: true})
	for _, e := range events {
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	return &fstest.MapFile{Data: b.Bytes()}
}
