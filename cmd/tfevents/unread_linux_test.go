package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/nobody"
)

// TestOthersRuns reads a log directory in which a run may not be read: the other runs are
// shown, and the exit code and a line on standard error say that one is missing. Commands
// that write files write none.
func TestOthersRuns(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	for _, name := range []string{"mine", "theirs"} {
		if err := os.MkdirAll(filepath.Join(logs, name), 0o755); err != nil {
			t.Fatal(err)
		}
		writeImages(t, filepath.Join(logs, name, "events.out.tfevents.1"), 2)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(logs, "theirs"), 0); err != nil {
		t.Fatal(err)
	}
	nobody.Become(t)
	tfevents := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		code = run(t.Context(), append(append([]string{"tfevents"}, args...), logs), nil, &out, &errs)
		return out.String(), errs.String(), code
	}
	missing := "tfevents: open " + logs + "/theirs: permission denied\n"
	for _, line := range []string{"ls", "stat", "cat", "check", "verify", "tail -n 1 --follow=false"} {
		out, errs, code := tfevents(strings.Fields(line)...)
		if code == exitOK || !strings.Contains("\n"+errs, "\n"+missing) || len(out)+len(errs) <= len(missing) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", line, code, out, errs)
		}
	}
	for _, line := range []string{"merge --dry-run " + logs, "edit --dry-run --to-step 1 " + logs} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append(append([]string{"tfevents"}, strings.Fields(line)...), filepath.Join(dir, "new")), nil, &out, &errs); code != exitFailed || errs.String() != missing || out.Len() > 0 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", line, code, out.String(), errs.String())
		}
	}
}
