package eventlog

import (
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// OwnSuffix ends the names of the events files that trainerd writes for a program. The
// program's, in the same folder, have other names.
const OwnSuffix = ".trainerd"

// ofHost is what is before OwnSuffix in the name of a file of TensorFlow 1 on a host whose
// name is that, without the dot.
var ofHost = lazyregexp.New(`tfevents\.\d+$`)

// IsOwn reports whether an events file, by its base name, is one that trainerd has written
// for a program.
func IsOwn(base string) bool {
	name, ok := strings.CutSuffix(base, OwnSuffix)
	return ok && strings.Contains(name, "tfevents") && !ofHost().MatchString(name)
}
