//go:build unix

package found

import (
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestContinuedFromUnverified has a program that has continued from a checkpoint before that was
// verified: it is not one that it may not have finished, unless it has been written again since.
func TestContinuedFromUnverified(t *testing.T) {
	for _, tt := range []struct{ continued, again, want bool }{{false, false, true}, {true, false, false}, {true, true, true}} {
		dir := childtest.Logdir(t, "ckpt-1")
		s := openStore(t, dir, "ckpt-*")
		all, ok := s.Intact(t.Context())
		if !ok || len(all) != 1 || !all[0].MayBeUnfinished(s.root) {
			t.Fatalf("intact are %+v, %v", all, ok)
		}
		if tt.continued {
			s.RecordContinued(&all[0], 5)
		}
		if tt.again {
			childtest.Write(t, filepath.Join(dir, "ckpt-1"), "other weights")
		}
		all, ok = s.Intact(t.Context())
		if !ok || len(all) != 1 || all[0].MayBeUnfinished(s.root) != tt.want {
			t.Errorf("%+v: intact are %+v, %v", tt, all, ok)
		}
		s.Refresh(true)
		if known := s.Known(); len(known) != 1 || known[0].MayBeUnfinished(s.root) != tt.want {
			t.Errorf("%+v: known are %+v", tt, known)
		}
	}
}
