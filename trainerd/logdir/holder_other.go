//go:build !linux

package logdir

// Logdir returns the logdir that a process of this machine has, which this system does not say.
func (h Holder) Logdir() string { return "" }
