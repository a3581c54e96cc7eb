//go:build !unix

// Command ours of bench/job needs process groups and SIGKILL.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "this system has no SIGKILL")
	os.Exit(77)
}
