package prove

import (
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// The starts of a program are found in a logdir whose name looks like a pattern.
func TestRestartsInFolder(t *testing.T) {
	for _, folder := range []string{"run", "lr=[0.1]"} {
		logdir := filepath.Join(t.TempDir(), folder)
		if err := os.Mkdir(logdir, 0o777); err != nil {
			t.Fatal(err)
		}
		w, err := tfevents.NewFileWriter(logdir, &tfevents.FileWriterOptions{Suffix: ".trainerd"})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddSessionLog(t.Context(), &tfpb.SessionLog{Status: tfpb.SessionLog_START}, 7); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := restartsIn(logdir); len(got) != 1 {
			t.Errorf("in %s: %v", folder, got)
		}
	}
}
