// Package slab allocates the memory of many small objects together, such as the names and shapes of
// a hundred thousand tensors, which takes less memory and a fraction of the time.
package slab

import (
	"strings"
	"unsafe"
)

// Texts keeps texts. The zero value is ready.
type Texts struct{ now strings.Builder }

// Keep returns a copy of b.
func (t *Texts) Keep(b []byte) string {
	const atOnce = 64 << 10
	if len(b) > t.now.Cap()-t.now.Len() {
		t.now.Reset()
		t.now.Grow(max(atOnce, len(b)))
	}
	t.now.Write(b)
	return t.now.String()[t.now.Len()-len(b):]
}

// KeepString returns a copy of a text that is a part of a larger one, or of a file.
func (t *Texts) KeepString(s string) string {
	return t.Keep(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Copy returns a copy of a list, whose memory it takes from room; nil stays nil.
func Copy[T any](room *[]T, list []T) []T {
	const atOnce = 1024
	n := len(list)
	switch {
	case list == nil:
		return nil
	case n == 0:
		return []T{}
	}
	if n > len(*room) {
		*room = make([]T, max(atOnce, n))
	}
	to := (*room)[:n:n]
	*room = (*room)[n:]
	copy(to, list)
	return to
}
