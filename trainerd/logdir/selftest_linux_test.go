package logdir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

func TestFileSystemKind(t *testing.T) {
	for _, c := range []struct {
		dir, want string
		magic     int64 // 0: whatever it is
		lasting   bool
	}{
		{"/proc", "file system 0x9fa0", unix.PROC_SUPER_MAGIC, true},
		{"/dev/pts", "file system 0x1cd1", unix.DEVPTS_SUPER_MAGIC, true},
		{"/dev/shm", "tmpfs", unix.TMPFS_MAGIC, false},
		{filepath.Join(t.TempDir(), "none"), "a file system of unknown kind", 0, true},
	} {
		var st unix.Statfs_t
		if err := unix.Statfs(c.dir, &st); c.magic != 0 && (err != nil || int64(st.Type) != c.magic) {
			continue // it is another here
		}
		if name, lasting := fsKind(c.dir); name != c.want || lasting != c.lasting {
			t.Errorf("%s is a %s, lasting %v", c.dir, name, lasting)
		}
	}
}

// TestSelfTestNotes looks at what a self-test only notes: where the disk is, its clock and its
// space.
func TestSelfTestNotes(t *testing.T) {
	dir := t.TempDir()
	kind, lasting := fsKind(dir)
	free, err := FreeSpace(dir)
	sessiontest.MustNoErr(t, err)
	results, err := (&SelfTest{Dir: dir}).Run(t.Context())
	sessiontest.MustNoErr(t, err)
	want := map[string]SelfTestResult{"clock": {Detail: "agree with the local clock"}, "directory": {Detail: kind}, "space": {}}
	if !lasting {
		want["directory"] = SelfTestResult{Detail: kind, Warning: true, Err: errors.New("is in memory")}
	}
	if free < lowSpace {
		want["space"] = SelfTestResult{Warning: true, Err: errors.New("only ")}
	}
	for _, r := range results {
		w, ok := want[r.Name]
		if !ok {
			continue
		}
		if r.Warning != w.Warning || !strings.Contains(r.Detail, w.Detail) || w.Err != nil && !strings.Contains(fmt.Sprint(r.Err), w.Err.Error()) {
			t.Errorf("%+v, want %+v", r, w)
		}
		if r.Name == "space" {
			var gib float64
			_, err := fmt.Sscanf(strings.TrimPrefix(r.Detail+fmt.Sprint(r.Err), "only "), "%f GiB free", &gib)
			if is := float64(free) / (1 << 30); err != nil || gib < is/2-0.1 || gib > 2*is+0.1 {
				t.Errorf("%v GiB are free, said are %v, %v", is, gib, err)
			}
		}
	}
	var out bytes.Buffer
	note := SelfTestResult{Name: "clock", Warning: true, Err: errors.New("it is late")}
	if err := (&SelfTest{Dir: dir}).Report(&out, []SelfTestResult{note}); err != nil || out.String() != "clock      note    it is late\n" {
		t.Errorf("report %q, %v", &out, err)
	}
}

func TestReadVersions(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	name := filepath.Join(t.TempDir(), "version")
	if err := readVersions(name, stop); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	whole := bytes.Repeat([]byte{7}, selfTestVersion)
	for what, b := range map[string][]byte{"": whole, "short": whole[1:], "mixed": append([]byte{8}, whole[1:]...), "empty": nil} {
		sessiontest.MustNoErr(t, os.WriteFile(name, b, 0o666))
		if err := readVersions(name, stop); (err != nil) != (what != "") {
			t.Errorf("%q: %v", what, err)
		}
	}
}
