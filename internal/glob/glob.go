// Package glob helps with patterns of file names.
package glob

import (
	"os"
	"strings"
)

// Escape returns a pattern for [path/filepath.Glob] that matches just one name. A
// folder may well be called "lr=[0.1]".
func Escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c == '\\' && os.PathSeparator == '/':
			b.WriteString(`[\\]`)
		case c == '*' || c == '?' || c == '[':
			b.Write([]byte{'[', c, ']'})
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
