package serve

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// nested is the server of a model with the columns a.v.0, a.v.1 and, if it has words, b.c.
func nested(t *testing.T, words bool) *Server {
	d, dir := flowers(words), t.TempDir()
	d.Schema.Features[0].Name, d.Schema.Features[1].Name = "a.v.0", "a.v.1"
	if words {
		d.Schema.Features[2].Name = "b.c"
	}
	save(t, dir, logistic(1), d, 7)
	s, _ := newServer(t, dir)
	return s
}

// TestNestedRows asks with objects and lists, as the rows of a JSON file have, of all verbs.
func TestNestedRows(t *testing.T) {
	for _, words := range []bool{false, true} {
		s, rest := nested(t, words), ""
		if words {
			rest = `, "b": {"c": "red", "d": [1]}`
		}
		var want, results string
		for _, row := range []string{
			`{"a.v.0": 3, "a.v.1": "1970-01-13", "b.c": "red"}`,
			`{"a": {"v": [3, "1970-01-13"]}` + rest + `}`,
			`{"a": {"v.0": 3, "v": {"1": "1970-01-13"}}` + rest + `}`,
			`{"a.v": [3, "1970-01-13"]` + rest + `}`,
		} {
			code, body := ask(s, "POST", predictPath, `{"instances": [`+row+`]}`)
			if want = cmp.Or(want, body); code != 200 || body != want {
				t.Errorf("%s: %d %s; want %s", row, code, body, want)
			}
			code, body = ask(s, "POST", "/v1/models/flowers:classify", `{"context": {"b": {"c": ["red"]}}, "examples": [`+row+`]}`)
			if results = cmp.Or(results, body); code != 200 || body != results {
				t.Errorf("%s: %d %s; want %s", row, code, body, results)
			}
		}
		for row, want := range map[string]string{
			`{"a": {"v": [3]}` + rest + `}`:                             "a.v.1",
			`{"a": {"v": [3, 12]}, "a.v.0": 3` + rest + `}`:             "is given twice",
			`{"a": {"v": null}, "a.v.0": 3` + rest + `}`:                "is given twice",
			`{"a": {"v": [3, 12]}, "b.c": "red"` + rest + `, "a.v": 1}`: "",
		} {
			for form, path := range map[string]string{"instances": predictPath, "examples": "/v1/models/flowers:classify"} {
				if code, body := ask(s, "POST", path, `{"`+form+`": [`+row+`]}`); (code == 400) != (want != "" || words) || !strings.Contains(body, want) {
					t.Errorf("%s: %d %s; want %s", row, code, body, want)
				}
			}
		}
		code, body := ask(s, "POST", predictPath, `{"instances": [{"a": null`+rest+`}, {"a": {"v": [null, null]}`+rest+`}]}`)
		if all := strings.SplitAfter(body, "}, "); code != 200 || len(all) != 2 || !strings.Contains(all[0], strings.TrimRight(all[1], "]}\n ")) {
			t.Errorf("missing: %d %s", code, body)
		}
	}
}

// TestNestedColumns asks by columns with objects and lists, which answers as the names of a file do.
func TestNestedColumns(t *testing.T) {
	for _, words := range []bool{false, true} {
		s, rest := nested(t, words), ""
		if words {
			rest = `, "b": {"c": ["red", null]}`
		}
		var want string
		for _, columns := range []string{
			`{"a.v.0": [3, null], "a.v.1": [12, 10], "b.c": ["red", null]}`,
			`{"a.v": [[3, "1970-01-13"], [null, 10]]` + rest + `}`,
			`{"a": {"v": [[3, 12], [null, 10]]}` + rest + `}`,
			`{"a": {"v": {"0": [3, null], "1": [12, 10]}}, "b": [{"c": "red", "d": 1}, {"c": null}]}`,
			`{"a": [{"v": [3, 12]}, {"v": [null, 10]}], "b": [{"c": "red"}, {"c": null, "d": 1}]}`,
			`{"a": {"v.0": [3, null]}, "a.v": {"1": [12, 10]}, "b.c": ["red", null]}`,
		} {
			code, body := ask(s, "POST", predictPath, `{"inputs": `+columns+`}`)
			if want = cmp.Or(want, body); code != 200 || body != want {
				t.Errorf("%s: %d %s; want %s", columns, code, body, want)
			}
		}
		code, body := ask(s, "POST", predictPath, `{"inputs": {"a": [null, {"v": null}, {"v": [null, null]}], "b": [null, {"c": null}, null]}}`)
		if code != 200 || strings.Count(body, "rose")+strings.Count(body, "lily") != 3 {
			t.Errorf("missing: %d %s", code, body)
		}
		for columns, want := range map[string]string{
			`{"a.v": [[3, 12], [4]]` + rest + `}`:                       `row 1: the column \"a.v.1\" is missing`,
			`{"a.v": [[3, 12], [4, 5]], "a": {"v.0": [3, 4]}}`:          `\"a.v.0\" is given twice`,
			`{"a.v": [3, 12]` + rest + `}`:                              `\"a.v.0\"`,
			`{"a.v": [[3, 12], [4, 5], [6, 7]], "b": {"c": ["red"]}}`:   map[bool]string{true: `rows, but \"`}[words],
			`{"a.v": [[3, 12], [4, 5], [6, 7]], "b": [{"c": [["x"]]}]}`: map[bool]string{true: ``}[words],
		} {
			code, body := ask(s, "POST", predictPath, `{"inputs": `+columns+`}`)
			if bad := want != "" || words; (code == 400) != bad || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s; want %s", columns, code, body, want)
			}
		}
	}
}

// TestListsOfWords asks with lists of words where the file has them, too.
func TestListsOfWords(t *testing.T) {
	d, dir := flowers(true), t.TempDir()
	d.Schema.Features[2] = dataset.Feature{Name: "tags", Kind: dataset.KindText, Vocabulary: []string{"red", "grün"}, Length: 2}
	save(t, dir, logistic(1), d, 7)
	s, _ := newServer(t, dir)
	row := func(tags string) string { return fmt.Sprintf(`{"length": 3, "day": 12, "tags": %s}`, tags) }
	_, want := ask(s, "POST", predictPath, `{"instances": [`+row(`"red grün"`)+`, `+row(`"red"`)+`]}`)
	for _, second := range []string{`["red"]`, `["red", "other"]`} {
		if code, body := ask(s, "POST", predictPath, `{"instances": [`+row(`["red", "gr\u00fcn"]`)+`, `+row(second)+`]}`); code != 200 || body != want {
			t.Errorf("%s: %d %s; want %s", second, code, body, want)
		}
	}
	_, want = ask(s, "POST", predictPath, `{"inputs": {"length": [3, 3], "day": [12, 12], "tags": ["red grün", "red"]}}`)
	if code, body := ask(s, "POST", predictPath, `{"inputs": {"length": [3, 3], "day": [12, 12], "tags": [["red", "grün"], ["red"]]}}`); code != 200 || body != want {
		t.Errorf("columns: %d %s; want %s", code, body, want)
	}
	_, want = ask(s, "POST", "/v1/models/flowers:classify", `{"examples": [`+row(`"red grün"`)+`]}`)
	if code, body := ask(s, "POST", "/v1/models/flowers:classify", `{"examples": [`+row(`["red", "grün"]`)+`]}`); code != 200 || body != want {
		t.Errorf("examples: %d %s; want %s", code, body, want)
	}
	if code, body := ask(s, "POST", predictPath, `{"instances": [`+row(`["red", 1]`)+`]}`); code != 400 {
		t.Errorf("a number among words: %d %s", code, body)
	}
}
