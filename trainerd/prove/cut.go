package prove

import (
	"fmt"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// readsCut is what libraries say of a file that was cut short. Those that the pattern of the
// checkpoints means were verified before the start, so it is another.
var readsCut = lazyregexp.New(`EOFError|(?i:unexpected (?:EOF|end of file))|UnpicklingError|PytorchStreamReader failed|finding central directory|BadZipFile|not a zip file|pickle data was truncated|truncated file|file is truncated|deserializing header|JSONDecodeError|Unexpected end of JSON|unable to (?:synchronously )?open file`)

// causeOfFailure says why a run did not complete.
func causeOfFailure(x *Result) Cause {
	after := "it failed after " + x.Disturbance.text()
	if found := readsCut().FindString(x.Failure); found != "" {
		return Cause{"a file that is cut short", fmt.Sprintf("%s, and says %s: the kill came while it wrote a file that is not among child.checkpoints, and it loads that. "+
			"Have it write to another name and rename that, or have child.checkpoints mean what it loads", after, found)}
	}
	return Cause{"the program does not get through a restart", after}
}
