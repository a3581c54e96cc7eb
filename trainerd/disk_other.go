//go:build !(linux || darwin || freebsd)

package trainerd

import "errors"

// freeSpace does not know on these systems.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
