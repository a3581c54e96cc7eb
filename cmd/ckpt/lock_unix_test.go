//go:build unix

package main

import (
	"os"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// lock FILE: holds the lock of a training until the script ends.
func lock(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) != 1 {
		ts.Fatalf("usage: lock FILE")
	}
	f, err := os.OpenFile(ts.MkAbs(words[0]), os.O_RDWR|os.O_CREATE, 0o666)
	ts.Check(err)
	ts.Defer(func() { f.Close() })
	ts.Check(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}
