//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// startOn starts cmd. Only Linux lets the CPUs be chosen.
func startOn(n int, cmd *exec.Cmd) error {
	if n != 0 {
		return errors.New("cpus: CPUs can be chosen on Linux only")
	}
	return cmd.Start()
}
