// Package garbage puts off the collection of garbage in commands that are over soon. It
// has no state of its own.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is the heap, in MiB, at which garbage is collected for the first
// time. Reading and checking a graph of 1 MB makes 40, and listing 100,000 tensors 50:
// collecting that again and again would take a third of a command's time.
const firstCollection = 64

// CollectLate puts off the first collection; from then on the heap grows as usual, or
// as GOGC says. A command that sets its own percentage leaves it out.
func CollectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const usualFirst = 4 // MiB, at 100 percent
	usual := debug.SetGCPercent(firstCollection / usualFirst * 100)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
