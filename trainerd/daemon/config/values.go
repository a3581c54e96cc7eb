package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// Column is a column of the data in the config: a string is a name, an integer
// an index.
type Column dataset.Column

func (c *Column) decodeValue(v any) (want string) {
	switch v := v.(type) {
	case string:
		if v == "" {
			return "a column's name or index"
		}
		*c = Column{Name: v}
		return ""
	case int64:
		if v < math.MinInt32 || v > math.MaxInt32 {
			return "a column's name or index"
		}
		*c = Column{Index: int(v)}
		return ""
	}
	return "a column's name or index"
}

// Seconds is a duration in the config.
type Seconds float64

// maxSeconds bounds times in the config: a hundred years.
const maxSeconds = 100 * 365 * 24 * 3600

// CheckLimit returns an error if s is larger than a config allows.
func (s Seconds) CheckLimit() error {
	if s > maxSeconds {
		return fmt.Errorf("want up to %.0f seconds, got %v", float64(maxSeconds), float64(s))
	}
	return nil
}

// Duration returns s as a duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// OrOff translates TensorFlow's 0 for "off" to Go's negative duration.
func (s Seconds) OrOff() time.Duration {
	if s == 0 {
		return -1
	}
	return max(s.Duration(), 1)
}

// Command is a program and its arguments: in the config a list of words, or a
// line for a shell.
type Command []string

func (c *Command) decodeValue(v any) (want string) {
	const form = `a list of words, as in ["python3", "train.py"], or a line for the shell`
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return form
		}
		*c = Command{"/bin/sh", "-c", v}
	case []any:
		words := make(Command, len(v))
		for i, word := range v {
			s, ok := word.(string)
			if !ok || i == 0 && s == "" {
				return form
			}
			words[i] = s
		}
		if len(words) == 0 {
			return form
		}
		*c = words
	default:
		return form
	}
	return ""
}

// Variables are environment variables.
type Variables map[string]string

func (e *Variables) decodeValue(v any) (want string) {
	const form = `a table of strings, as in { OMP_NUM_THREADS = "4" }`
	m, ok := v.(map[string]any)
	if !ok {
		return form
	}
	all := Variables{}
	for key, value := range m {
		s, ok := value.(string)
		if !ok || key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(s, 0) {
			return form
		}
		all[key] = s
	}
	*e = all
	return ""
}

// Environ returns the variables in the form that the system expects.
func (e Variables) Environ() []string {
	all := make([]string, 0, len(e))
	for _, key := range slices.Sorted(maps.Keys(e)) {
		all = append(all, key+"="+e[key])
	}
	return all
}

// Feeds says in the config what placeholders are fed, by their names.
type Feeds map[string]any

func (f *Feeds) decodeValue(v any) (want string) {
	const table = `a table of placeholders, as in { x = "features", y = "label" }`
	m, ok := v.(map[string]any)
	if !ok {
		return table
	}
	for _, value := range m {
		switch value.(type) {
		case string, bool, int64, float64, []any:
		default:
			return table
		}
	}
	*f = m
	return ""
}

// Names returns the placeholders, in order.
func (f Feeds) Names() []string { return slices.Sorted(maps.Keys(f)) }
