//go:build amd64 && !noasm

package philox

import "golang.org/x/sys/cpu"

// assembly reports whether this processor can run it.
var assembly = cpu.X86.HasAVX2
