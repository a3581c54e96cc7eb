package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// A checkpoint of either version that is there only under its second name has
// its own again, whatever is left of the one that should have replaced it.
func TestReinstate(t *testing.T) {
	for name, s := range map[string]*Saver{
		"one file": {}, "two files": {Shards: 2}, "V1 in two files": {Shards: 2, Format: FormatV1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1), "w": sessiontest.Vector[float32](2)})
			path := filepath.Join(dir, "model.ckpt")
			prefix := save(t, s, sess, path, 4)
			whole := sessiontest.Files(t, dir, "model*")
			if err := overwriting(s, prefix); err != nil {
				t.Fatal(err)
			}
			for _, name := range sessiontest.Files(t, dir, "model*") { // what has come of the next one
				if !strings.Contains(name, previousSuffix) && !strings.HasSuffix(name, indexSuffix) {
					sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, name)))
					sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, name), []byte("other"), 0o666))
				}
			}
			log, lines := sessiontest.NewLog()
			again := &Saver{Shards: s.Shards, Format: s.Format, Logger: log}
			sessiontest.MustNoErr(t, again.Restore(t.Context(), sess, previousName(prefix)))
			if got := again.Reinstate(previousName(prefix)); got != prefix {
				t.Fatalf("got %s, want %s", got, prefix)
			}
			if got := again.parent(); got != filepath.Base(prefix) {
				t.Errorf("the training continues from %s, want %s", got, filepath.Base(prefix))
			}
			whole = withoutManifest(whole)
			if diff := cmp.Diff(withoutManifest(sessiontest.Files(t, dir, "model*")), whole); diff != "" {
				t.Errorf("files (-got +want):\n%s", diff)
			}
			m := sessiontest.NewModel(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](0), "w": sessiontest.Vector[float32](0)})
			restored, err := m.NewSession(t.Context())
			sessiontest.MustNoErr(t, err)
			sessiontest.MustNoErr(t, again.Restore(t.Context(), restored, prefix))
			if got := again.LastCheckpoints(); len(got) != 1 || got[0] != prefix {
				t.Errorf("looks after %v", got)
			}
			if again.lastPreserved.IsZero() {
				t.Error("the first keep-every period has not begun")
			}
			if got := again.Reinstate(prefix); got != prefix {
				t.Errorf("a checkpoint with its own name becomes %s", got)
			}
			if strings.Contains(lines.String(), "level=WARN") {
				t.Errorf("log:\n%s", lines)
			}
		})
	}
}

// overwriting does what comes before the first file of another checkpoint is
// published under a prefix.
func overwriting(s *Saver, prefix string) error {
	if unsharded(prefix) != prefix {
		return s.keepPreviousShards(unsharded(prefix), s.Shards)
	}
	if err := s.keepPrevious(prefix); err != nil {
		return err
	}
	return atomicfile.OrOS(s.FS).Remove(prefix + indexSuffix)
}

func withoutManifest(names []string) (kept []string) {
	for _, name := range names {
		if !strings.Contains(name, "manifest") {
			kept = append(kept, name)
		}
	}
	return kept
}
