//go:build !unix

package main

import "os"

// peakMiB returns 0: these systems do not tell.
func peakMiB(*os.ProcessState) float64 { return 0 }
