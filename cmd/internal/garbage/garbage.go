// Package garbage delays garbage collection in commands that end soon.
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

// usualFirst is the heap, in MiB, at which the runtime collects first: at 100 percent,
// and in proportion at others.
const usualFirst = 4

// CollectLate puts off the first collection; from then on the heap grows as usual, or
// as GOGC says. A command that sets its own percentage leaves it out.
func CollectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(firstCollection / usualFirst * 100)
	afterCollection(func() { debug.SetGCPercent(usual) })
}

// ballast counts as memory in use, and nothing touches it, so it takes none.
//
//lint:ignore U1000 that it is held is its use
var ballast []byte

// CollectSeldom puts off every collection until the heap has that size, for commands
// that hold little and pass by much. A higher percentage would do so too, but after a
// collection during which much has passed by, all of that counts as in use: a heap of
// gigabytes could follow.
func CollectSeldom() {
	if os.Getenv("GOGC") == "" {
		ballast = make([]byte, firstCollection/2<<20) // the heap grows to twice what is in use
	}
}

// afterCollection has f called, by the goroutine that the runtime has for that, after
// the next collection.
func afterCollection(f func()) {
	runtime.AddCleanup(new([64]byte), func(f func()) { f() }, f)
}
