package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is the heap, in MiB, at which garbage is collected for the first
// time. Reading and checking a graph of 1 MB makes 40, and collecting that again and
// again would take a third of the time before the first step.
const firstCollection = 64

// collectLate puts off the first collection of garbage; from then on the heap grows as
// usual, or as GOGC says.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const usualFirst = 4 // MiB, at 100 percent
	usual := debug.SetGCPercent(firstCollection / usualFirst * 100)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
