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

// TestJSONLongFirst refuses a first object that is too long for a row without reading
// on to learn whether it holds rows.
func TestJSONLongFirst(t *testing.T) {
	for name, begin := range map[string]string{
		"a value":           `{"x": "`,
		"a key":             `{"`,
		"an inner value":    `{"x": {"0": "\"`,
		"a value of a list": `{"x": [1, "`,
		"many values":       `{"x": ["a"], "y": 1` + strings.Repeat(`, "key": ""`, 2<<20) + `, "z": "`,
	} {
		t.Run(name, func(t *testing.T) {
			endless := new(letters)
			_, err := readRows(io.MultiReader(strings.NewReader(begin), endless))
			var e *Error
			if !errors.As(err, &e) || e.Record != 1 || !strings.Contains(e.Reason, "longer than 16 MiB") {
				t.Errorf("got %v (%+v), want that object 1 is too long", err, e)
			}
			if endless.read > 2*maxRecord {
				t.Errorf("%d MiB were read", endless.read>>20)
			}
		})
	}
}

// TestJSONLargeSingle reads rows from a single object that is longer than a row may be.
func TestJSONLargeSingle(t *testing.T) {
	text, row := `{"data":[[1,"x"]`, `,[1,"`+strings.Repeat("a", 1<<20)+`"]`
	text += strings.Repeat(row, 20) + `],"columns":["a","b"]}`
	if n, err := readRows(strings.NewReader(text)); n != 21 || err != io.EOF {
		t.Errorf("%d rows, %v; want 21", n, err)
	}
}

// TestJSONSampleIsBounded holds few rows in memory to learn the columns if they are long.
func TestJSONSampleIsBounded(t *testing.T) {
	row := `{"x": "` + strings.Repeat("a", 8<<20) + "\"}\n"
	var rows []io.Reader
	for range 50 {
		rows = append(rows, strings.NewReader(row))
	}
	last := strings.NewReader(row)
	if _, err := New(io.MultiReader(append(rows, last)...), Options{Format: "json"}); err != nil {
		t.Fatal(err)
	}
	if last.Len() != len(row) {
		t.Error("all rows were read before the first was asked for")
	}
}

// readRows counts the rows of JSON up to an error, or to [io.EOF].
func readRows(r io.Reader) (n int, err error) {
	table, err := New(r, Options{Format: "json"})
	for ; err == nil; n++ {
		_, err = table.Next()
	}
	return max(n-1, 0), err
}
