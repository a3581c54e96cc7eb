package eventlog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// A checkpoint in a folder whose name is not UTF-8, as those of old disks, is recorded all the
// same.
func TestCheckpointOfOddFolder(t *testing.T) {
	dir := t.TempDir()
	w, err := tfevents.NewFileWriter(dir, nil)
	sessiontest.MustNoErr(t, err)
	log, _ := sessiontest.NewLog()
	l := New(w, log)
	sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_CHECKPOINT, "old\xff/model.ckpt", 7))
	sessiontest.MustNoErr(t, l.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*tfevents*"))
	sessiontest.MustNoErr(t, err)
	text, err := os.ReadFile(files[0])
	sessiontest.MustNoErr(t, err)
	if !bytes.Contains(text, []byte("old\uFFFD/model.ckpt")) {
		t.Errorf("the events are %q", text)
	}
}
