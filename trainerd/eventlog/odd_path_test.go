package eventlog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// A checkpoint in a folder whose name is not UTF-8, as those of old disks, is recorded all the
// same.
func TestCheckpointOfOddFolder(t *testing.T) {
	dir := t.TempDir()
	w, err := tfevents.NewFileWriter(dir, nil)
	mustNoErr(t, err)
	log, _ := newLog()
	l := New(w, log)
	mustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_CHECKPOINT, "old\xff/model.ckpt", 7))
	mustNoErr(t, l.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*tfevents*"))
	mustNoErr(t, err)
	text, err := os.ReadFile(files[0])
	mustNoErr(t, err)
	if !bytes.Contains(text, []byte("old\uFFFD/model.ckpt")) {
		t.Errorf("the events are %q", text)
	}
}
