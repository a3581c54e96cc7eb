package kerneltest

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// A kernel that passes on an input in silence gives wrong numbers only where the memory
// happens to be used again, so it is looked for in every test.
func init() { exec.ChecksAliases = true }
