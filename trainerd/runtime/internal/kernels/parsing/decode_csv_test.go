package parsing

import (
	"math"
	"strings"
	"testing"
)

// TestSplitCSV splits lines as TensorFlow 2.21 does.
func TestSplitCSV(t *testing.T) {
	const all = math.MaxInt
	for _, test := range []struct {
		line     string
		most     int
		noQuotes bool
		want     string // fields with a "|" after each; "error"
	}{
		{line: "", most: all, want: ""},
		{line: "\n", most: all, want: ""},
		{line: "a,", most: all, want: "a||"},
		{line: "a,,", most: all, want: "a|||"},
		{line: ",a", most: all, want: "|a|"},
		{line: `"","b"`, most: all, want: "|b|"},
		{line: `"a ""q"" b",c`, most: all, want: `a "q" b|c|`},
		{line: "\"a\nb\",c", most: all, want: "a\nb|c|"},
		{line: "\na,b", most: all, want: "a|b|"},
		{line: "a,\r\nb", most: all, want: "a|b|"},
		{line: "a,b\n", most: all, want: "error"},
		{line: "a\rb,c", most: all, want: "error"},
		{line: "a,\n", most: all, want: "a|"},
		{line: `a"b,c`, most: all, want: "error"},
		{line: `a"b,c`, most: all, noQuotes: true, want: `a"b|c|`},
		{line: `"a,b`, most: all, noQuotes: true, want: `"a|b|`},
		{line: `"a" ,b`, most: all, want: "error"},
		{line: `a,"b"x`, most: all, want: "error"},
		{line: `a,"b`, most: all, want: "error"},
		{line: `a,b"c`, most: 1, want: "a|"},
		{line: `a,"b`, most: 1, want: "a|"},
		{line: `b"c,a`, most: 2, want: "error"},
	} {
		fields, err := splitCSV(nil, []byte(test.line), test.most, ',', !test.noQuotes)
		var got strings.Builder
		for _, f := range fields {
			got.WriteString(string(f) + "|")
		}
		if err != nil {
			got.Reset()
			got.WriteString("error")
		}
		if got.String() != test.want {
			t.Errorf("%q (%d fields, no quotes: %v): %q, %v; want %q", test.line, test.most, test.noQuotes, got.String(), err, test.want)
		}
	}
}
