//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

// lock: these systems have no such locks.
func lock(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("lock needs a Unix") }
