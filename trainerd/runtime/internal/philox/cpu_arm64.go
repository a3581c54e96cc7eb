//go:build arm64 && !noasm

package philox

// assembly reports whether this processor can run it: all have NEON.
const assembly = true
