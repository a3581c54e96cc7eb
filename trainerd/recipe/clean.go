package recipe

import (
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

var (
	// wrapped is a number as libraries print their scalars: tensor(2.30, grad_fn=...),
	// Array(0.5, dtype=float32), np.float64(0.1).
	wrapped = lazyregexp.New(`\b(?:tensor|Array|(?:np|numpy|jnp)\.\w+)\(\s*` + number + `\s*(?:,[^()]*(?:\([^()]*\))?[^()]*)?\)`)
	// single is an array of one number: return=[21.].
	single = lazyregexp.New(`=\[\s*` + number + `\s*\]`)
	// worker is what Ray writes before each line of its processes.
	worker = lazyregexp.New(`^\(\w+ pid=\d+(?:, ip=[\w.:]+)?\)\s*`)
)

// clean removes from a line what is not part of what the program says: colours, what loggers
// and launchers write before it, and what its libraries write around numbers.
func clean(text string) string {
	if strings.ContainsAny(text, "\x1b\b\x00") {
		text = escapes().ReplaceAllString(text, "")
	}
	if strings.Contains(text, " - ") {
		text = origin().ReplaceAllString(text, " ")
	}
	text = strings.TrimSpace(text)
	if strings.Contains(text, "(") {
		text = wrapped().ReplaceAllString(worker().ReplaceAllString(text, ""), "$1")
	}
	if strings.Contains(text, "=[") {
		text = single().ReplaceAllString(text, "=$1")
	}
	return text
}

// isBinary reports whether a line is of a program that writes data there, such as an archive or samples of
// sound. To look for numbers in these takes long, and what looks like some does not count. Text has escape
// sequences, shifts of character sets and marks of prompts, but not several of the other control characters.
func isBinary(line string) bool {
	const least = 4 // as good as certain in 100 random bytes
	n := 0
	for i := 0; i < len(line) && n < least; i++ {
		switch c := line[i]; {
		case c == 0, c >= '\a' && c <= '\x0f', c == '\x1b', c >= ' ':
		default:
			n++
		}
	}
	return n == least
}
