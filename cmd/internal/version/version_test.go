package version

import (
	"runtime"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	if Short() == "" {
		t.Error("a build that nobody has released has no version at all")
	}
	release = "1.2.3"
	defer func() { release = "" }()
	line := Line()
	if !strings.HasPrefix(line, "1.2.3 ") || !strings.Contains(line, runtime.Version()) {
		t.Errorf("a release says %q", line)
	}
}
