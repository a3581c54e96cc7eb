package table

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// letters are without end.
type letters struct{ read int64 }

func (l *letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	l.read += int64(len(b))
	return len(b), nil
}

// An object that never ends is refused where it is, and not read into memory.
func TestJSONWithoutEnd(t *testing.T) {
	for name, begin := range map[string]string{
		"in an array":        `[{"x": 1, "y": 0}, {"x": "`,
		"in lines":           "{\"x\": 1, \"y\": 0}\n{\"x\": \"",
		"in an inner object": "{\"x\": 1, \"y\": 0}\n{\"x\": {\"z\": \"",
		"a key":              "{\"x\": 1, \"y\": 0}\n{\"",
	} {
		t.Run(name, func(t *testing.T) {
			endless := new(letters)
			table, err := New(io.MultiReader(strings.NewReader(begin), endless), Options{Format: "json"})
			for err == nil {
				_, err = table.Next()
			}
			var e *Error
			if !errors.As(err, &e) || e.Record != 2 || !strings.Contains(e.Reason, "longer than 16 MiB") {
				t.Errorf("got %v (%+v), want that object 2 is too long", err, e)
			}
			if endless.read > 2*maxRecord {
				t.Errorf("%d MiB were read", endless.read>>20)
			}
		})
	}
}
