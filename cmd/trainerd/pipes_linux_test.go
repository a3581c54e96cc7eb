package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/cmd/internal/pipes"
)

// TestPipesInLogdirs has a pipe to which nobody writes in the place of each file of the runs of an
// earlier release: no command that only looks waits for it.
func TestPipesInLogdirs(t *testing.T) {
	pipes.InPlaceOfEach(t, "../../fixtures/release-0.1.0/logs", func(runs, name string) { lookAtRuns(t, runs, name) })
}

func lookAtRuns(t *testing.T, runs, name string) {
	t.Helper()
	dir := filepath.Dir(name)
	for _, args := range [][]string{{"ls", runs}, {"status", dir}, {"logs", dir}, {"eval", dir}, {"predict", dir, "/dev/null"}} {
		pipes.MustNotWait(t, name, "trainerd "+strings.Join(args, " "), func() {
			run(t.Context(), append([]string{"trainerd"}, args...), new(bytes.Buffer), new(bytes.Buffer), new(bytes.Buffer))
		})
	}
}
