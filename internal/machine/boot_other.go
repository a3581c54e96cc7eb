//go:build !linux

package machine

// BootID is not known here.
func BootID() string { return "" }
