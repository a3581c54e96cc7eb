package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/nobody"
)

// TestFolderOfOthers has a folder below the one asked for that this user may not read: what is in
// it is neither listed nor intact, and the commands say so.
func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.CopyFS(filepath.Join(dir, "run"), os.DirFS("../../fixtures/ckpt_v2/saver_history")),
		os.Mkdir(filepath.Join(dir, "private"), 0))
	if err != nil {
		t.Fatal(err)
	}
	nobody.Become(t)
	for _, verb := range []string{"ls", "verify"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"ckpt", verb, dir}, &out, &errs)
		if said := out.String() + errs.String(); code != exitFailed || !strings.Contains(said, filepath.Join(dir, "private")) {
			t.Errorf("%s: exit code %d\n%s", verb, code, said)
		}
		if verb == "ls" && !strings.Contains(out.String(), "model.ckpt-40") {
			t.Errorf("ls: %s", &out)
		}
	}
}
