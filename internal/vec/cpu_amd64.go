//go:build amd64 && !noasm

package vec

import "golang.org/x/sys/cpu"

// assembly reports whether this processor can run it.
var assembly = cpu.X86.HasAVX2 && cpu.X86.HasFMA

var avx512 = assembly && cpu.X86.HasAVX512F

// register is the bytes of a register.
const register = 32
