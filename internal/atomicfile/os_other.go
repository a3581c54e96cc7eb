//go:build !unix

package atomicfile

const openNoFollow = 0

// syncDir does nothing: these systems cannot sync a directory.
func syncDir(string) error { return nil }
