//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

// isLocked reports whether a process has its name in the lock file.
func isLocked(name string) bool { return namesHolder(name) }
