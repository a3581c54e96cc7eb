package child

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

// startHint says what to do about a program that the system may not execute, "" for any other error.
func startHint(err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	name := ""
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		name = e.Path
	} else if e, ok := errors.AsType[*exec.Error](err); ok {
		name = e.Name
	}
	info, err := os.Stat(name)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return ""
	case info.Mode()&0o111 == 0:
		return "; make it executable with chmod +x, or begin the command with the program that reads it, as in `sh FILE`"
	case isNoexec(name):
		return "; its disk is mounted noexec, so nothing on it is executed: begin the command with the program that reads it, as in `sh FILE`, or move it to another disk"
	}
	return ""
}
