package found

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
)

// Rejected is a checkpoint that does not count, and why.
type Rejected struct {
	Checkpoint
	err  error
	full bool // the disk was full: it may have cut others in the same way
}

func (b Rejected) Error() string { return fmt.Sprintf("checkpoint %s: %v", b.Path, b.err) }

// Damaged reports whether the files themselves are the cause, and not the system, which did not let
// them be read or made durable.
func (b Rejected) Damaged() bool {
	if b.lost() {
		return false
	}
	_, corrupt := errors.AsType[*ckptfmt.CorruptError](b.err)
	return corrupt || !ckptdir.IsUnreadable(b.err) && !errors.Is(b.err, fs.ErrNotExist)
}

// lost reports whether the disk has failed to store the files: then their content may change by
// itself.
func (b Rejected) lost() bool {
	_, is := errors.AsType[*notDurableError](b.err)
	return is
}

// notDurableError says that the disk has failed to store what the program wrote. A second sync of
// the same file might report success for data that are lost.
type notDurableError struct{ err error }

func (e *notDurableError) Error() string {
	return fmt.Sprintf("it cannot be made durable: %v", e.err)
}
