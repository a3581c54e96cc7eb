package table

import (
	"io"
	"strings"
	"testing"
)

// TestJSONShapes reads the rows of a single object.
func TestJSONShapes(t *testing.T) {
	const want = "a,b\n1,x\n2.50,\n"
	for name, c := range map[string]struct{ text, want string }{
		"columns, as pandas writes them": {`{"a":{"0":1,"1":2.50},"b":{"0":"x","1":null}}`, want},
		"rows by number":                 {`{"0":{"a":1,"b":"x"},"1":{"a":2.50,"b":null}}`, want},
		"rows by name":                   {`{"r":{"a":1,"b":"x"},"s":{"a":2.50,"b":null},"t":{"a":3,"b":"y"}}`, want + "3,y\n"},
		"lists":                          {" {\"a\": [1, 2.50],\n \"b\": [\"x\", null]}\n", want},
		"split":                          {`{"columns":["a","b"],"index":[7,8],"data":[[1,"x"],[2.50,null]]}`, want},
		"an array in an object":          {`{"count": 2, "data": [{"a": 1, "b": "x"}, {"a": 2.50}], "tags": [1]}`, want},
		"a row":                          {`{"a": 1, "b": "x"}`, "a,b\n1,x\n"},
		"a row with an object":           {`{"a": 1, "b": {"c": 2, "d": 3}}`, "a,b.c,b.d\n1,2,3\n"},
		"a row with lists":               {`{"a": [1, 2], "b": [3]}`, "a.0,a.1,b.0\n1,2,3\n"},
		"two rows":                       {"{\"a\": {\"0\": 1, \"1\": 2}}\n{\"a\": {\"0\": 3, \"1\": 4}}\n", "a.0,a.1\n1,2\n3,4\n"},
		"rows of different lengths":      {`{"columns":["a","b"],"data":[[1,2],[3],[4]]}`, "columns,data\n[\"a\",\"b\"],[[1,2],[3],[4]]\n"},
	} {
		table, err := New(strings.NewReader(c.text), Options{Sniff: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := strings.Join(table.Columns, ",") + "\n"
		for {
			row, err := table.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			got += strings.Join(row.Fields, ",") + "\n"
		}
		if got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
}
