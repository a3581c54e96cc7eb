//go:build !linux

package system

// ReapOrphans does nothing: only Linux has containers with a first process.
func ReapOrphans(program int) {}

// KeepReaping does nothing, for the same reason.
func KeepReaping() (end func()) { return func() {} }

// KeepReapingExcept does nothing, for the same reason.
func KeepReapingExcept(program int) (end func()) { return func() {} }
