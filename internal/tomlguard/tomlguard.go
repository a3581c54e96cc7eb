// Package tomlguard decodes TOML that people write by hand, and refuses text that
// would cost the parser time or memory out of proportion to its length: a header of
// 300,000 nested tables takes it minutes.
package tomlguard

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
)

// What a text may have at most.
const (
	MaxBytes = 1 << 20
	MaxDepth = 100 // of arrays and tables in each other, and parts of a dotted key
)

// ReadFile reads a file for [Decode]. Of one that is too long it reads no more than
// shows that: it may have no end.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// Decode is [toml.Decode] with limits. Its own errors are a [toml.ParseError] too.
func Decode(text string, v any) (toml.MetaData, error) {
	if err := check(text); err != nil {
		return toml.MetaData{}, err
	}
	return toml.Decode(text, v)
}

func check(text string) error {
	if len(text) > MaxBytes {
		return problem(1, "the file has more than %d bytes", MaxBytes)
	}
	line, depth, parts := 1, 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			line, parts = line+1, 0
		case '[', '{':
			depth, parts = depth+1, 0
		case ']', '}':
			depth, parts = max(depth-1, 0), 0
		case ',', '=':
			parts = 0
		case '.':
			parts++
		case '#':
			i += lineEnd(text[i:]) - 1
		case '"', '\'':
			n := stringEnd(text[i:])
			line += strings.Count(text[i:i+n], "\n")
			i += n - 1
		}
		if depth > MaxDepth || parts >= MaxDepth {
			return problem(line, "tables or arrays are more than %d deep in each other", MaxDepth)
		}
	}
	return nil
}

// lineEnd returns how far it is to the end of the line.
func lineEnd(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// stringEnd returns the length of the string that text begins with. One that is not
// closed ends with its line, or with the text: the parser reports it.
func stringEnd(text string) int {
	quote := text[:1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(text, long) {
		return closing(text, long, len(text))
	}
	return closing(text, quote, lineEnd(text))
}

func closing(text, quote string, limit int) int {
	for i := len(quote); i < limit; i++ {
		if text[i] == '\\' && quote[0] == '"' {
			i++
		} else if strings.HasPrefix(text[i:], quote) {
			return i + len(quote)
		}
	}
	return limit
}

func problem(line int, format string, args ...any) error {
	return toml.ParseError{Message: fmt.Sprintf(format, args...), Position: toml.Position{Line: line}}
}
