//go:build !linux

package logdir

// bootID is not known here.
func bootID() string { return "" }
