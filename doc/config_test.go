package doc_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

var update = flag.Bool("update", false, "write config.md again")

// configFiles are where the tables of the config are declared.
var configFiles = []string{
	"../trainerd/daemon/config/config.go", "../trainerd/daemon/config/data.go", "../trainerd/daemon/config/child_table.go",
	"../trainerd/daemon/config/warm_start.go", "../trainerd/model/config.go",
}

const configHead = `# Config

Everything that a job's TOML file may contain, with the defaults. An unknown key, a value of the wrong type or an
invalid value is an error with its line, and ` + "`trainerd check FILE`" + ` reports all of them at once. ` + "`--set KEY=VALUE`" + `
changes any key for one run, as in ` + "`--set train.steps=500`" + `. A job has a model family (` + "`[model]`" + ` and ` + "`[data]`" + `), a
graph (` + "`[graph]`" + `), or a program (` + "`[child]`" + `).

This page is generated from the code by ` + "`make config`" + `.
`

// docs are the comments of structs, and of their fields by "Struct.Field".
func docs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range configFiles {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, spec := range decl.Specs {
				s := spec.(*ast.TypeSpec)
				fields, ok := s.Type.(*ast.StructType)
				if !ok {
					continue
				}
				key := f.Name.Name + "." + s.Name.Name
				all[key] = decl.Doc.Text()
				for _, field := range fields.Fields.List {
					for _, n := range field.Names {
						all[key+"."+n.Name] = field.Doc.Text()
					}
				}
			}
		}
	}
	return all
}

// reference is the page being written.
type reference struct {
	*testing.T
	docs map[string]string
	text strings.Builder
}

func (r *reference) table(path string, v reflect.Value) {
	name := v.Type().String()
	if path == "" {
		r.text.WriteString("\n## Top\n\n")
	} else {
		fmt.Fprintf(&r.text, "\n## [%s]\n\n%s\n\n", path, about(r.docs[name], v.Type().Name()))
	}
	r.text.WriteString("| key | type | default | |\n|---|---|---|---|\n")
	var tables []int
	var last, lastDoc string // a comment may be about the fields after it, too
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key := field.Tag.Get("toml")
		switch {
		case key == "":
			continue
		case isTable(field.Type):
			tables = append(tables, i)
			continue
		}
		doc := r.docs[name+"."+field.Name]
		switch {
		case doc != "":
			last, lastDoc = key, doc
		case strings.Contains(lastDoc, field.Name):
			doc = "See `" + last + "`."
		default:
			r.Errorf("%s.%s has no comment", name, field.Name)
		}
		kind := typeName(field.Type)
		if kind == "" {
			r.Errorf("%s.%s: the page does not know the type %s", name, field.Name, field.Type)
		}
		if field.Tag.Get("path") != "" {
			kind = "path"
		}
		fmt.Fprintf(&r.text, "| `%s` | %s | %s | %s |\n", key, kind, defaultOf(v.Field(i)), cell(sentence(doc, field.Name, key)))
	}
	for _, i := range tables {
		r.table(v.Type().Field(i).Tag.Get("toml"), v.Field(i))
	}
}

// isTable reports whether a field is a table of the file: one value may be a struct too.
func isTable(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for field := range t.Fields() {
		if field.Tag.Get("toml") != "" {
			return true
		}
	}
	return false
}

// about is the comment of a table as it begins its section.
func about(doc, name string) string {
	doc = strings.Join(strings.Fields(doc), " ")
	doc, _, _ = strings.Cut(doc, " The zero value of a field") // Go's, not the file's
	return wrap(inKeys("This table " + strings.TrimPrefix(doc, name+" ")))
}

// wrap breaks prose into lines.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > maxColumns:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// sentence is the comment of a field in the words of the file.
func sentence(doc, name, key string) string {
	doc = strings.Join(strings.Fields(doc), " ")
	for _, word := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(doc, name+word); ok {
			if first, _, _ := strings.Cut(rest, " "); slices.Contains([]string{"a", "an", "the", "where", "how", "what", "regular", "tensors", "for", "fed", "its", "added"}, first) {
				rest = strings.ToUpper(rest[:1]) + rest[1:]
			}
			return inKeys(rest) // values stay as they are typed
		}
	}
	if strings.Contains(key, "_") {
		return inKeys(strings.Replace(doc, name, "`"+key+"`", 1))
	}
	return inKeys(doc)
}

// goName is a word that can only be the name of a field.
var goName = regexp.MustCompile(`\b[A-Z][A-Za-z]*[a-z][A-Z]\w*\b|\bTLS[A-Z]\w+\b`)

// inKeys puts the keys of the config for the names of fields.
func inKeys(doc string) string {
	return goName.ReplaceAllStringFunc(doc, func(name string) string {
		if key, ok := keyOf(reflect.TypeFor[config.Config](), name); ok {
			return "`" + key + "`"
		}
		return name
	})
}

// keyOf finds the key of a field, in tables too.
func keyOf(t reflect.Type, name string) (key string, ok bool) {
	for field := range t.Fields() {
		tag := field.Tag.Get("toml")
		if tag != "" && field.Name == name {
			return tag, true
		}
		if tag != "" && field.Type.Kind() == reflect.Struct {
			if key, ok := keyOf(field.Type, name); ok {
				return key, true
			}
		}
	}
	return "", false
}

// cell is text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func typeName(t reflect.Type) string {
	switch t.Name() {
	case "Seconds":
		return "seconds"
	case "Column", "ColumnName":
		return "string or integer"
	case "ClassWeights":
		return "string or table"
	case "Command":
		return "list of strings, or string"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	case reflect.Map:
		return "table"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer"
	}
	return "" // unknown: the row would be wrong
}

func defaultOf(v reflect.Value) string {
	if c, ok := v.Interface().(config.Column); ok {
		return fmt.Sprintf("`%d`", c.Index)
	}
	switch {
	case v.Kind() == reflect.Bool:
	case v.IsZero():
		return ""
	case v.Kind() == reflect.String:
		return fmt.Sprintf("`%q`", v.String())
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

// TestConfigReference holds config.md against the code; with -update it writes
// it.
func TestConfigReference(t *testing.T) {
	r := &reference{T: t, docs: docs(t)}
	r.text.WriteString(configHead)
	r.table("", reflect.ValueOf(config.Default()).Elem())
	if *update {
		if err := os.WriteFile("config.md", []byte(r.text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("config.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != r.text.String() {
		t.Error("config.md is not what the code says; run `make config`")
	}
}

// mention is a key of a table as pages write it: in a command, or with an underscore, which
// names of files do not have there. A function of TensorFlow may look like one.
var mention = regexp.MustCompile(`(?:^|[^\w.])(?:--set '?([a-z_]+\.[a-z_]+)|((?:train|eval|child|supervisor|cluster|model|data|graph|warm_start)\.[a-z]+_[a-z_]+)\b(\(?))`)

// TestConfigKeys makes sure that the keys exist that pages name.
func TestConfigKeys(t *testing.T) {
	known := map[string]bool{}
	for _, k := range config.Keys() {
		known[k.Name] = true
	}
	found := 0
	for _, page := range append(pages(t), "../README.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, m := range mention.FindAllStringSubmatch(line, -1) {
				if key := m[1] + m[2]; m[3] == "" && !known[key] {
					t.Errorf("%s:%d: there is no key %s", page, i+1, key)
				}
				found++
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d keys; the pattern is wrong", found)
	}
}
