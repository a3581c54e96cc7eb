//go:build unix

package child

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStartHint has scripts that are not executable: the error says what to type instead.
func TestStartHint(t *testing.T) {
	dir := t.TempDir()
	plain, script := filepath.Join(dir, "plain.sh"), filepath.Join(dir, "script.sh")
	for name, mode := range map[string]os.FileMode{plain: 0o644, script: 0o755} {
		if err := os.WriteFile(name, []byte("exit 0\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "fork/exec", Path: plain, Err: syscall.EACCES}, "chmod +x"},
		{&exec.Error{Name: plain, Err: fs.ErrPermission}, "chmod +x"},
		{&fs.PathError{Op: "fork/exec", Path: script, Err: syscall.EACCES}, ""},
		{&fs.PathError{Op: "fork/exec", Path: dir, Err: syscall.EACCES}, ""},
		{&fs.PathError{Op: "fork/exec", Path: plain, Err: syscall.ENOEXEC}, ""},
	} {
		text := (&StartError{Command: []string{plain}, Err: c.err}).Error()
		if rest := strings.TrimPrefix(text, "cannot start "+plain+": "+c.err.Error()); !strings.Contains(rest, c.want) || c.want == "" && rest != "" {
			t.Errorf("%s; want %q", text, c.want)
		}
	}
}
