//go:build !linux

package atomicfile

// syncFileSystem does nothing: these systems sync single files only.
func syncFileSystem(names []string) (rest []string, err error) { return names, nil }
