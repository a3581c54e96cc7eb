// Package fileerr words the errors of file operations.
package fileerr

import (
	"errors"
	"io/fs"
	"strings"
)

// Hint says what to do about a file that cannot be opened: hint, unless it is there and this
// user may not read it.
func Hint(name string, err error, hint string) string {
	if !errors.Is(err, fs.ErrPermission) {
		return hint
	}
	hint = "let this user read it, and enter the folders above it"
	if strings.HasPrefix(name, "/home/") || strings.HasPrefix(name, "/root/") {
		hint += "; a service sees nothing of home folders without the drop-in home-data.conf"
	}
	return hint
}

// Cause returns the text of an error without the file's name, for messages that
// begin with it.
func Cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
