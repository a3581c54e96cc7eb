//go:build !linux

package child

// isNoexec does not know on these systems.
func isNoexec(string) bool { return false }
