package daemon

import (
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// recordVersion is the version of logdir.BestFile and earlyStopFile. Older trainerds must not
// take files of a newer version for something else.
const recordVersion = 1

// maxRecord bounds what is read of these files.
const maxRecord = 64 << 20

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

// checkManifests returns an error if a newer trainerd has saved one of the checkpoints that this
// one would continue from and rotate: the contents of its manifest, such as metrics, would be
// ignored.
func checkManifests(c *config.Config) error {
	if c.Logdir == "" {
		return nil
	}
	found, err := checkpoint.Find(c.Logdir, checkpoint.DefaultLatestFilename, c.Supervisor.CheckpointBasename)
	if err != nil {
		return nil // the run reports what is wrong with the logdir
	}
	for _, prefix := range found.Prefixes {
		if _, err := manifest.Read(prefix); errors.Is(err, ckptfmt.ErrVersion) {
			return fmt.Errorf("%w; a newer trainerd has trained here: continue with that", err)
		}
	}
	return nil
}
