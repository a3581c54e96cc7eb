//go:build !unix

package prove

import "os"

// killGroup kills a program.
func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
