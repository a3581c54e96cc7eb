// Package version has the version of the commands.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker in what is published:
//
//	go build -ldflags '-X github.com/trainerd/trainerd/cmd/internal/version.release=1.2.3'
var release string

// Short returns the version: that of the release, or the one that go install and
// go build have found for the module, or "(devel)".
func Short() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Line returns what --version prints after the command's name: the version, the
// Go release it was built with, and the system it was built for.
func Line() string {
	return fmt.Sprintf("%s %s %s/%s", Short(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
