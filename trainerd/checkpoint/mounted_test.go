package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// mounted is a disk with another one at a folder: nothing can be renamed from one to the other.
type mounted struct {
	atomicfile.FS
	at string
}

func (m mounted) Rename(from, to string) error {
	below := func(name string) bool { return strings.HasPrefix(name, m.at+string(filepath.Separator)) }
	if below(from) != below(to) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EXDEV}
	}
	return m.FS.Rename(from, to)
}

// TestMoveAsideOnMountedDisk has checkpoints on a disk that is mounted below the logdir: damaged
// ones are moved out of the way there, not into the folder of a move that is under way. Files on
// two disks are left to the user.
func TestMoveAsideOnMountedDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"on the disk":              {[]string{"big/ckpt-5.pt"}, "big/damaged"},
		"in folders of it":         {[]string{"big/a/ckpt-5.pt", "big/b/ckpt-5.pt"}, "big/a/damaged"},
		"held by a second name":    {[]string{filepath.Join("big", filepath.Base(atomicfile.TempName("x")), "last.pt")}, "big/damaged"},
		"not on the disk":          {[]string{"ckpt-5.pt"}, "damaged"},
		"on both":                  {[]string{"ckpt-5.pt", "big/ckpt-5.pt"}, ""},
		"on both, the other first": {[]string{"big/ckpt-5.pt", "ckpt-5.pt"}, ""},
	} {
		dir := t.TempDir()
		var files []string
		for _, file := range tc.files {
			file = filepath.Join(dir, file)
			files = append(files, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(file), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		to, err := MoveAside(mounted{atomicfile.OrOS(nil), filepath.Join(dir, "big")}, dir, "ckpt-5", files, time.Now())
		if tc.want == "" {
			if !errors.Is(err, syscall.EXDEV) {
				t.Errorf("%s: %v, want that it is another disk", name, err)
			}
			continue
		}
		if err != nil || filepath.Dir(to) != filepath.Join(dir, tc.want) {
			t.Errorf("%s: moved to %s, %v; want a folder in %s", name, to, err, tc.want)
		}
		if entries, _ := os.ReadDir(to); len(entries) != len(files) {
			t.Errorf("%s: moved are %v", name, entries)
		}
		if entries, _ := os.ReadDir(filepath.Join(dir, "damaged")); tc.want != "damaged" && len(entries) > 0 {
			t.Errorf("%s: left are %v", name, entries)
		}
	}
}
