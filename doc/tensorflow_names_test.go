package doc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// tableName is a name of this project in the table of TensorFlow's names: a package's, or a
// member of a type.
var tableName = regexp.MustCompile("`([A-Za-z]\\w*)\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?`")

// TestTensorFlowNames holds that each Go name in that table exists.
func TestTensorFlowNames(t *testing.T) {
	text, err := os.ReadFile("use-from-go.md")
	if err != nil {
		t.Fatal(err)
	}
	api, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## TensorFlow's names\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var names [][]string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			names = append(names, tableName.FindAllStringSubmatch(cells[2], -1)...)
		}
	}
	if !found || len(names) < 20 {
		t.Fatalf("%d names", len(names))
	}
	for _, m := range names {
		if !inAPI(string(api), m[1], m[2], m[3]) {
			t.Errorf("%s is not in api.txt", m[0])
		}
	}
}

// inAPI reports whether a package or a type has a member: a function, type, method, field
// or constant. A name of three parts is a member of a type of a package.
func inAPI(api, of, name, member string) bool {
	if member != "" {
		return inAPI(api, name, member, "")
	}
	method := regexp.MustCompile(`(?m): func \(\w* ?\*?` + of + `\) ` + name + `\(`)
	field := regexp.MustCompile(`(?m): type ` + of + `, ` + name + `\b`)
	ofPackage := regexp.MustCompile(`(?m)^(?:\S*/)?` + of + `: (?:func|type|const|var) ` + name + `\b`)
	return method.MatchString(api) || field.MatchString(api) || ofPackage.MatchString(api)
}
