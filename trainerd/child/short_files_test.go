//go:build unix

package child

import (
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// TestKilledInSaveKeepsOne has programs that are killed within a save, in forms that do
// not say whether they are complete, where only one checkpoint is kept: the next start has
// the one before, and nothing has deleted that.
func TestKilledInSaveKeepsOne(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, good, torn string
		fails               int // starts with the torn one, which the form does not tell from a whole one
	}{
		"a file":               {"w-*", "write w-3", "tear w-6", 2},
		"an empty file":        {"w-*", "write w-3", "empty w-6", 0},
		"a folder":             {"w-*", "write w-3/a w-3/b", "write w-6/a", 0},
		"the first of a group": {"{w,m}-*", "write w-3 m-3", "write w-6", 0},
		"ranks":                {"w-*", "write w-3-rank0 w-3-rank1", "write w-6-rank0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := strings.Repeat("|exit 1", tc.fails) + "|env STEP;list w-3*;resume 9"
			sv, out := supervise(t, "steps 1 3;"+tc.good+";pause;steps 4 5;await trainerd.manifests/*3.json;steps 6 6;"+tc.torn+";kill 9"+again)
			sv.Checkpoints, sv.Retention = tc.pattern, []retention.Policy{retention.Last(1)}
			if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2+tc.fails {
				t.Errorf("%+v, %v", exit, err)
			}
			if want := "STEP is \"3\"\nfound w-3"; !strings.Contains(out.String(), want) {
				t.Errorf("want %q in:\n%s", want, out)
			}
		})
	}
}
