package daemon

import "fmt"

// recordVersion is the version of logdir.BestFile and earlyStopFile. Older trainerds must not
// take files of a newer version for something else.
const recordVersion = 1

// recordError says that logdir.BestFile or earlyStopFile is damaged.
type recordError struct {
	File string
	Err  error
	Then string // what happens once it is removed
}

func (e *recordError) Error() string {
	return fmt.Sprintf("%s: %v; remove it, and %s", e.File, e.Err, e.Then)
}
func (e *recordError) Unwrap() error { return e.Err }

// versionError says that a newer trainerd has written a file of the logdir.
type versionError struct {
	File    string
	Version int
}

func (e *versionError) Error() string {
	return fmt.Sprintf("%s has version %d, and this trainerd reads %d: a newer one has trained here; continue with that", e.File, e.Version, recordVersion)
}

// checkVersion returns an error for a file that is too new.
func checkVersion(file string, version int) error {
	if version > recordVersion {
		return &versionError{file, version}
	}
	return nil
}
