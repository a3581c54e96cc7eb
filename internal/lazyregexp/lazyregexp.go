// Package lazyregexp compiles regular expressions when they are first used. The commands have some
// hundred, but a run uses only a few; compiling all of them took nearly a third of the start of
// trainerd.
package lazyregexp

import (
	"regexp"
	"sync"
	"testing"
)

// New returns what compiles an expression at its first call, and panics if that
// cannot be done. It is safe for concurrent use. In tests it compiles at once, so
// that a wrong expression fails them.
func New(text string) func() *regexp.Regexp {
	compile := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
	if testing.Testing() {
		compile()
	}
	return compile
}
