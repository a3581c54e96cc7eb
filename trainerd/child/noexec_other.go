//go:build !linux

package child

// isNoexec cannot tell on these systems.
func isNoexec(string) bool { return false }
