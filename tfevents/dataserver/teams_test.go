package dataserver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents/internal/teamtest"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// TestTeams has a server that looks again and again while the workers of a team write, are killed and go
// back: after each look it says what one that has begun just now says. Records come in pieces, and
// somebody makes backups.
func TestTeams(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 4))
		dir := t.TempDir()
		server := serverOf(t, dir)
		team := teamtest.New(random)
		for _, r := range team.Records {
			name := filepath.Join(dir, "run", r.File)
			for _, piece := range pieces(t, random, r) {
				appendTo(t, name, piece)
				switch random.IntN(60) {
				case 0, 1, 2:
					checkAsNew(t, fmt.Sprint("seed ", seed), server, dir)
				case 3, 4, 5, 6, 7:
					server.Load(t.Context())
				case 8, 9, 10, 11, 12: // as when the system reports that a file has grown
					server.loadNamed(t.Context(), map[string]struct{}{"run": {}})
				case 13:
					copyFile(t, name, name+".bak")
				}
			}
		}
		checkAsNew(t, fmt.Sprintf("seed %d, at the end", seed), server, dir)
		for _, tag := range teamtest.Tags {
			var want []int64
			for _, p := range team.Want(tag) {
				want = append(want, p.Step)
			}
			if got := stepsOf(t, server, tag); !slices.Equal(got, want) {
				t.Errorf("seed %d: %s is shown at the steps %v, want %v", seed, tag, got, want)
			}
		}
	}
}

// stepsOf returns the steps of a tag of scalars or histograms that are shown.
func stepsOf(t *testing.T, s *Server, tag string) []int64 {
	t.Helper()
	all := answersOf(t, s)
	for _, x := range all[3].(*tbdata.ReadScalarsResponse).GetRuns()[0].GetTags() {
		if x.GetTagName() == tag {
			return x.GetData().GetStep()
		}
	}
	for _, r := range all[5].(*tbdata.ReadTensorsResponse).GetRuns() {
		for _, x := range r.GetTags() {
			if x.GetTagName() == tag {
				return x.GetData().GetStep()
			}
		}
	}
	return nil
}

func serverOf(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := New(&Options{Logdir: dir, Reload: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pieces returns the bytes of a record, mostly in one piece.
func pieces(t *testing.T, random *rand.Rand, r teamtest.Record) [][]byte {
	t.Helper()
	b := recordsOf(t, r.Event)
	if random.IntN(4) > 0 {
		return [][]byte{b}
	}
	at := random.IntN(len(b))
	return [][]byte{b[:at], b[at:]}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkAsNew has a server look until nothing is left to read, and holds its answers against those of a new one.
func checkAsNew(t *testing.T, what string, server *Server, dir string) {
	t.Helper()
	server.Load(t.Context())
	for late := server.late(); late != nil; late = server.late() {
		server.loadNamed(t.Context(), late)
	}
	other := serverOf(t, dir)
	other.Load(t.Context())
	got, want := answersOf(t, server), answersOf(t, other)
	for i := range want {
		if !proto.Equal(got[i], want[i]) {
			t.Fatalf("%s: the server says\n%s, a new one says\n%s", what, protojson.Format(got[i]), protojson.Format(want[i]))
		}
	}
}

// answersOf returns what a server says of everything that teams write.
func answersOf(t *testing.T, s *Server) (all []proto.Message) {
	t.Helper()
	ask := func(answer proto.Message, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, answer)
	}
	ctx, most := context.Background(), &tbdata.Downsample{NumPoints: 1000}
	budget := func() *budget { return &budget{left: maxAnswer} }
	histograms := filter(summary.PluginHistograms)
	ask(s.listPlugins(ctx, new(tbdata.ListPluginsRequest), budget()))
	ask(s.listRuns(ctx, new(tbdata.ListRunsRequest), budget()))
	ask(s.listScalars(ctx, &tbdata.ListScalarsRequest{PluginFilter: scalars}, budget()))
	ask(s.readScalars(ctx, &tbdata.ReadScalarsRequest{PluginFilter: scalars, Downsample: most}, budget()))
	ask(s.listTensors(ctx, &tbdata.ListTensorsRequest{PluginFilter: histograms}, budget()))
	ask(s.readTensors(ctx, &tbdata.ReadTensorsRequest{PluginFilter: histograms, Downsample: most}, budget()))
	return all
}
