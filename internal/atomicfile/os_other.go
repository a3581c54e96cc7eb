//go:build !unix

package atomicfile

const openNoFollow = 0

// syncDir does nothing: these systems cannot sync a directory.
func syncDir(string) error { return nil }

// sameDevice is false: there is nothing to sync.
func sameDevice(_, _ string) bool { return false }
