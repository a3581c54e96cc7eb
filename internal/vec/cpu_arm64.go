//go:build arm64 && !noasm

package vec

// assembly reports whether this processor can run it: all have NEON.
const assembly = true

// register is the bytes of a register.
const register = 16
