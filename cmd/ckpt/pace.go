package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// manyObjects is the heap from which on garbage is collected as in any program.
const manyObjects = 64 << 20

// paceGC lets the heap of a command grow further between collections while it is small:
// a listing keeps most of what it makes, and each collection looks at all of it again.
// GOGC in the environment decides otherwise.
func paceGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(400)
	afterCollection(func() bool {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Uint64() < manyObjects {
			return true
		}
		debug.SetGCPercent(100)
		return false
	})
}

// afterCollection calls f after each collection of garbage, until it returns false.
func afterCollection(f func() bool) {
	type watched struct{ _ [16]byte }
	var again func(*watched)
	again = func(w *watched) {
		if f() {
			runtime.SetFinalizer(w, again)
		}
	}
	runtime.SetFinalizer(new(watched), again)
}
