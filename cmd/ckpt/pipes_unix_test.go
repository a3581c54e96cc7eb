//go:build unix

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/cmd/internal/pipes"
)

// TestPipesInFolders has a pipe to which nobody writes in the place of each file of the runs of an
// earlier release: no command that only looks waits for it.
func TestPipesInFolders(t *testing.T) {
	pipes.InPlaceOfEach(t, "../../fixtures/release-0.1.0/logs", func(_, name string) { lookAtAll(t, filepath.Dir(name), name) })
}

func lookAtAll(t *testing.T, dir, name string) {
	t.Helper()
	prefix, _, _ := strings.Cut(name, ".manifest")
	for _, suffix := range []string{".index", ".meta", ".data-00000-of-00001"} {
		prefix = strings.TrimSuffix(prefix, suffix)
	}
	for _, args := range [][]string{
		{"ls", dir}, {"ls", "--why", dir}, {"verify", dir}, {"state", dir}, {"latest", dir}, {"gc", "-n", dir}, {"repair", "-n", dir},
		{"ls", prefix}, {"verify", prefix}, {"meta", prefix}, {"hash", prefix}, {"stat", prefix}, {"tree", prefix}, {"diff", prefix, dir}, {"ls", name}, {"meta", name},
	} {
		pipes.MustNotWait(t, name, "ckpt "+strings.Join(args, " "), func() {
			run(t.Context(), append([]string{"ckpt"}, args...), new(bytes.Buffer), new(bytes.Buffer))
		})
	}
}
