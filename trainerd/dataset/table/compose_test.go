package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Names and words that look alike are alike, whatever program stored them.
func TestComposed(t *testing.T) {
	const split = "u\u0308" // an umlaut, as a Mac may store it
	for name, text := range map[string]string{
		"CSV":  "\u200bGr" + split + "n\u00a0,b\u200e,y\n1," + split + "bel,5\n2,gut,6\n",
		"JSON": "{\"Gr" + split + "n\":1,\"b\":\"" + split + "bel\",\"y\":5}\n{\"Gr\u00fcn\":2,\"b\":\"gut\",\"y\":6}\n",
	} {
		tab, err := New(strings.NewReader(text), Options{Sniff: true, Dialect: Dialect{Header: true}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := read(t, tab)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"Gr\u00fcn", "b", "y"}, tab.Columns); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([][]string{{"1", "\u00fcbel", "5"}, {"2", "gut", "6"}}, rows); diff != "" {
			t.Errorf("%s: rows (-want +got):\n%s", name, diff)
		}
	}
}
