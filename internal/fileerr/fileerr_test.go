package fileerr

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestHint(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"/home/ada/x.csv", &fs.PathError{Op: "open", Err: syscall.ENOENT}, "check the name"},
		{"/data/x.csv", &fs.PathError{Op: "open", Err: syscall.EACCES}, "let this user read it, and enter the folders above it"},
		{"/home/ada/x.csv", &fs.PathError{Op: "open", Err: syscall.EACCES}, "without the drop-in home-data.conf"},
	} {
		got := Hint(c.name, c.err, "check the name")
		if !strings.HasSuffix(got, c.want) {
			t.Errorf("%s, %v: %s", c.name, c.err, got)
		}
	}
}
