package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSniff(t *testing.T) {
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "%d,%d\n", i, i%3)
	}
	for _, c := range []struct {
		name, text string
		want       string // separator, header, columns, rows, columns of words, classes of the last
	}{
		{"plain", "1,2,0\n3,4,1\n", `',' false [0 1 2] 2 [] 2`},
		{"header", "a,b,c\n1,2,0\n3,4,1\n", `',' true [a b c] 2 [] 2`},
		{"semicolons with decimal commas", "a;b\n1,5;0\n2,5;1\n", `';' true [a b] 2 [0] 2`},
		{"tabs", "1\t0\n2\t1\n", `'\t' false [0 1] 2 [] 2`},
		{"quoted", "\"a, b\",c\n1,0\n2,1\n", `',' true [a, b c] 2 [] 2`},
		{"words", "red,1\nblue,0\n", `',' false [0 1] 2 [0] 2`},
		{"words under a header", "colour,x,label\nred,1,0\nblue,2,1\n", `',' true [colour x label] 2 [0] 2`},
		{"numbers", "x,y\n1,0.5\n2,1.5\n", `',' true [x y] 2 [] 0`},
		{"negative numbers", "1,-1\n2,1\n", `',' false [0 1] 2 [] 0`},
		{"empty fields", "a,b\n,1\n2,0\n", `',' true [a b] 2 [0] 2`},
		{"one row", "a,b\n", `',' false [0 1] 1 [0 1] 0`},
		{"byte order mark", "\ufeffa,b\n1,0\n2,1\n", `',' true [a b] 2 [] 2`},
		{"many rows", many.String(), `',' false [0 1] 1000 [] 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "data.csv")
			if err := os.WriteFile(name, []byte(c.text), 0o666); err != nil {
				t.Fatal(err)
			}
			s, err := Sniff(name)
			if err != nil {
				t.Fatal(err)
			}
			words := s.Words()
			got := fmt.Sprintf("%q %v %v %d %v %d", s.Comma, s.Header, s.Columns, len(s.Rows), words, s.Classes(len(s.Columns)-1))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	for _, text := range []string{"", "1\n2\n", "1,2\n3\n", "\"a,b\n", "\x1f\x8bx"} {
		name := filepath.Join(t.TempDir(), "data.csv")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var fault *Error
		if _, err := Sniff(name); !errors.As(err, &fault) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Sniff("nowhere.csv"); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestSampleColumn(t *testing.T) {
	s := &Sample{Header: true, Columns: []string{"a", "b", "0"}}
	for text, want := range map[string]int{"a": 0, "b": 1, "0": 2, "1": 1, "-1": 2, "-3": 0} {
		if got, ok := s.Column(text); !ok || got != want {
			t.Errorf("%s is column %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"c", "3", "-4", ""} {
		if got, ok := s.Column(text); ok {
			t.Errorf("%q is column %d", text, got)
		}
	}
}

func FuzzSniff(f *testing.F) {
	for _, text := range []string{"", "1,2\n", "a;b\n1;2\n", "\"", "\x1f\x8b", "a\tb\n1\t2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, comma := range []rune{',', ';', '\t'} {
			s := sampleOf(text, comma, true)
			if s == nil {
				continue
			}
			s.Words()
			for c := range s.Columns {
				s.Classes(c)
			}
		}
	})
}
