package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListsOfJSON has columns whose fields are lists.
func TestListsOfJSON(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"numbers":           {`{"v":[1, -2.5e3],"y":0} {"v":[3,4],"y":1}`, "v.0 v.1 y|1 -2.5e3 0|3 4 1"},
		"null in a list":    {`{"v":[1,null]} {"v":[3,4]}`, "v.0 v.1|1 _|3 4"},
		"no list":           {`{"v":[1,2],"y":0} {"y":1} {"v":null,"y":2}`, "v.0 v.1 y|1 2 0|_ _ 1|_ _ 2"},
		"in an object":      {`{"a":{"v":[1]}} {"a":{"v":[2]}}`, "a.v.0|1|2"},
		"a name is taken":   {`{"v":[1],"v.0":2}`, "v.0 v.0.1|1 2"},
		"different lengths": {`{"v":[1,2]} {"v":[3]}`, "v|[1,2]|[3]"},
		"empty":             {`{"v":[]} {"v":[1]}`, "v|[]|[1]"},
		"texts":             {`{"v":["a","b"]} {"v":["1","2"]}`, `v|["a","b"]|["1","2"]`},
		"escaped texts":     {`{"v":["gr\u00fcn", "<b>"]}`, `v|["grün","<b>"]`},
		"texts of numbers":  {`{"v":["1","2"]}`, `v|["1","2"]`},
		"lists":             {`{"v":[[1],[2]]}`, "v|[[1],[2]]"},
		"a number":          {`{"v":[1]} {"v":2}`, "v|[1]|2"},
		"all are missing":   {`{"v":null,"y":1}`, "v y|_ 1"},
		"very long":         {`{"v":[` + strings.Repeat("1,", maxList) + `1]}`, "v|[" + strings.Repeat("1,", maxList) + "1]"},
	} {
		tab, err := New(strings.NewReader(c.text), Options{Sniff: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rows, err := read(t, tab)
		if got := shown(tab.Columns, rows); err != nil || got != c.want {
			t.Errorf("%s: %v, got %.200s, want %.200s", name, err, got, c.want)
		}
	}
}

// shown returns columns and rows with blanks and bars between them.
func shown(columns []string, rows [][]string) string {
	lines := []string{strings.Join(columns, " ")}
	for _, row := range rows {
		var fields []string
		for _, f := range row {
			if f == "" {
				f = "_"
			}
			fields = append(fields, f)
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	return strings.Join(lines, "|")
}

// TestListOfAnotherLength is in a row after those that show the length: it is a fault of that row alone.
func TestListOfAnotherLength(t *testing.T) {
	text := strings.Repeat("{\"v\":[1,2],\"y\":1}\n", 1200) + "{\"v\":[1,2,3],\"y\":2}\n{\"v\":[5,6],\"y\":3}\n"
	tab, err := New(strings.NewReader(text), Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := read(t, tab)
	e, ok := errors.AsType[*Error](err)
	if !ok || !e.Row || e.Record != 1201 || !strings.Contains(e.Error(), "v is not a list of 2 numbers") || len(rows) != 1200 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows, err = read(t, tab); err != nil || fmt.Sprint(rows) != "[[5 6 3]]" {
		t.Errorf("then %v, %v", rows, err)
	}
}

// TestListsOfParquet has columns that are lists, in the forms that writers give them, and others that are repeated.
func TestListsOfParquet(t *testing.T) {
	type point struct {
		X int32 `parquet:"x"`
	}
	type inner struct {
		V []int32 `parquet:"v,list"`
	}
	type row struct {
		Plain  []int32         `parquet:"plain"`
		List   []float32       `parquet:"list,list"`
		Null   []*float64      `parquet:"null,list"`
		Tags   []string        `parquet:"tags,list"`
		Many   []int64         `parquet:"many"`
		Points []point         `parquet:"points"`
		Lists  []inner         `parquet:"lists"`
		Map    map[string]bool `parquet:"map"`
		Y      int32           `parquet:"y"`
	}
	half := 0.5
	tab := parquetOf(t, []row{
		{[]int32{1, 2}, []float32{1.5, -2}, []*float64{nil, &half}, []string{"a", `b"`}, []int64{1}, []point{{1}}, []inner{{[]int32{1}}}, map[string]bool{"k": true}, 7},
		{nil, []float32{}, nil, nil, []int64{2, 3}, nil, nil, nil, 8},
		{[]int32{3, 4}, []float32{0, 1}, []*float64{&half, nil}, []string{"7"}, nil, nil, nil, nil, 9},
	})
	rows, err := read(t, tab)
	if err != nil {
		t.Fatal(err)
	}
	const want = `plain.0 plain.1 list.0 list.1 null.0 null.1 tags many y` +
		`|1 2 1.5 -2 _ 0.5 ["a","b\""] [1] 7` +
		`|_ _ _ _ _ _ _ [2,3] 8` +
		`|3 4 0 1 0.5 _ ["7"] _ 9`
	if diff := cmp.Diff(want, shown(tab.Columns, rows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
