//go:build !(linux || darwin || freebsd)

package logdir

import "errors"

// FreeSpace is unknown on these systems.
func FreeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
