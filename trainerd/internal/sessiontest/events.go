package sessiontest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// Events returns the events in a folder, in the order of its files' names.
func Events(t *testing.T, dir string) (all []*tfpb.Event) {
	t.Helper()
	for _, name := range Files(t, dir, "events.out.tfevents.*") {
		all = append(all, EventsIn(t, filepath.Join(dir, name))...)
	}
	return all
}

// EventsIn returns the events of a file.
func EventsIn(t *testing.T, name string) (all []*tfpb.Event) {
	t.Helper()
	data, err := os.ReadFile(name)
	MustNoErr(t, err)
	for e, err := range tfevents.NewReader(bytes.NewReader(data)).Events() {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, e)
	}
	return all
}
