package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/trainerd/trainerd/internal/tomlguard"
)

// valueDecoder is a config value with a form of its own. It returns a
// description of what is expected when v, as TOML gives it, is not that.
type valueDecoder interface {
	decodeValue(v any) (want string)
}

// decoder fills a config from TOML. Unlike toml.Decode it continues after a
// fault, so that one run shows all of them, and remembers where each value came
// from, so that checks made later can say so too.
type decoder struct {
	file     string
	meta     toml.MetaData
	root     reflect.Value
	origins  map[string]origin
	problems *Error
}

// origin is where a value was set: a line of the file, or a flag.
type origin struct {
	line int
	flag string
}

// decode fills the struct that dst points to.
func (d *decoder) decode(text string, dst any) {
	d.root = reflect.ValueOf(dst).Elem()
	var top map[string]toml.Primitive
	meta, err := tomlguard.Decode(text, &top)
	if err != nil {
		d.syntax(err)
		return
	}
	d.meta = meta
	d.table("", top, d.root)
}

func (d *decoder) syntax(err error) {
	d.problems.syntax = true
	p := &Problem{File: d.file, Reason: err.Error()}
	var parse toml.ParseError
	if errors.As(err, &parse) {
		p.Line, p.Reason = parse.Position.Line, "is not TOML: "+strings.TrimSuffix(parse.Message, ".")
	}
	d.problems.add(p)
}

// maxKeys is how many keys of a table are looked at: more than any has that was meant.
const maxKeys = 500

// table fills the struct dst from the keys of one table.
func (d *decoder) table(path string, values map[string]toml.Primitive, dst reflect.Value) {
	if len(values) > maxKeys {
		d.report(origin{}, path, fmt.Sprintf("has %d keys, which are not those of a job", len(values)), "")
		return
	}
	for key, primitive := range values {
		full := join(path, key)
		value, line := d.look(primitive)
		field, ok := fieldOf(dst, key)
		if !ok {
			d.unknown(origin{line: line}, full, isTable(value))
			continue
		}
		if !isTableField(field) {
			d.assign(origin{line: line}, full, field, value)
			continue
		}
		var sub map[string]toml.Primitive
		if err := d.meta.PrimitiveDecode(primitive, &sub); err != nil || !isTable(value) {
			d.report(origin{line: line}, full, fmt.Sprintf("want a table, got %s", DescribeValue(value)), fmt.Sprintf("write [%s] on a line of its own, and its keys below", full))
			continue
		}
		d.table(full, sub, field)
	}
}

// located takes any value and refuses it, because the position of a value in
// the file is to be had from the error alone.
type located struct{ value any }

var errLocated = errors.New("located")

func (l *located) UnmarshalTOML(v any) error {
	l.value = v
	return errLocated
}

// look returns a value and the line it is on.
func (d *decoder) look(p toml.Primitive) (value any, line int) {
	var l located
	err := d.meta.PrimitiveDecode(p, &l)
	var parse toml.ParseError
	if errors.As(err, &parse) {
		line = parse.Position.Line
	}
	return l.value, line
}

// set applies an override.
func (d *decoder) set(o Override) {
	from := origin{flag: o.Flag}
	key, text, ok := strings.Cut(o.Assignment, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		d.report(from, "", "want KEY=VALUE", "for example --set train.steps=500")
		return
	}
	field, path := d.root, ""
	for name := range strings.SplitSeq(key, ".") {
		if !isTableField(field) {
			d.report(from, path, "is not a table, so it has no key "+name, "")
			return
		}
		next, ok := fieldOf(field, name)
		if !ok {
			d.unknown(from, key, false)
			return
		}
		field, path = next, join(path, name)
	}
	if isTableField(field) {
		d.report(from, key, "is a table", fmt.Sprintf("set one of its keys: %s", strings.Join(prefixed(key, keysOf(field)), ", ")))
		return
	}
	var value any = text
	if !o.Literal {
		value = flagValue(strings.TrimSpace(text), field.Kind() == reflect.String)
	}
	d.assign(from, key, field, value)
}

// flagValue parses the value of a flag as TOML; a word that is not TOML is a
// string. Where a string is wanted, what is not
// written as a TOML string is taken as it is.
func flagValue(text string, wantString bool) any {
	var parsed map[string]any
	_, err := tomlguard.Decode("value = "+text, &parsed)
	value, ok := parsed["value"]
	if err != nil || !ok || len(parsed) != 1 {
		return text
	}
	if _, isString := value.(string); wantString && !isString {
		return text
	}
	return value
}

// assign stores a TOML value in a field, or reports that it does not fit.
func (d *decoder) assign(from origin, key string, field reflect.Value, value any) {
	if from.flag != "" {
		d.replace(key)
	}
	d.origins[key] = from
	if want := store(field, value); want != "" {
		d.report(from, key, fmt.Sprintf("want %s, got %s", want, DescribeValue(value)), hintFor(field, value))
	}
}

// homeFolders reports paths that name the home folder as a shell does: here it would be a folder
// of such a name.
func (d *decoder) homeFolders(paths []pathValue) {
	for _, p := range paths {
		if rest, ok := afterHome(*p.value); ok {
			d.report(d.origins[p.key], p.key, fmt.Sprintf("%q is no home folder here: nothing but a shell knows ~ and $HOME", *p.value), homeHint(rest))
		}
	}
}

// alternatives are keys that exclude each other: a job has one of them.
var alternatives = [][]string{
	{"train.steps", "train.epochs"},
	{"data.test_fraction", "data.test_rows", "data.test_file"},
	{"data.features", "data.drop"},
}

// replace removes what the file sets instead of a key that a flag sets.
func (d *decoder) replace(key string) {
	for _, group := range alternatives {
		if !slices.Contains(group, key) {
			continue
		}
		for _, other := range group {
			if from, ok := d.origins[other]; ok && other != key && from.flag == "" {
				delete(d.origins, other)
				table, name, _ := strings.Cut(other, ".")
				parent, _ := fieldOf(d.root, table)
				field, _ := fieldOf(parent, name)
				field.SetZero()
			}
		}
	}
}

// store sets field to value. It returns what would fit when value does not.
func store(field reflect.Value, value any) (want string) {
	if dec, ok := field.Addr().Interface().(valueDecoder); ok {
		return dec.decodeValue(value)
	}
	switch field.Kind() {
	case reflect.String:
		v, ok := value.(string)
		if !ok {
			return "a string"
		}
		field.SetString(v)
	case reflect.Bool:
		v, ok := value.(bool)
		if !ok {
			return "true or false"
		}
		field.SetBool(v)
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return storeNumber(field, value)
	case reflect.Slice:
		return storeSlice(field, value)
	default:
		return fmt.Sprintf("a value of type %v", field.Type())
	}
	return ""
}

func storeNumber(field reflect.Value, value any) (want string) {
	i, isInt := value.(int64)
	f, isNumber := NumberOf(value)
	switch {
	case field.CanFloat() && isNumber:
		field.SetFloat(f)
	case field.CanFloat():
		return "a number"
	case field.CanUint() && isInt && i >= 0:
		field.SetUint(uint64(i))
	case field.CanUint():
		return "an integer from 0 up"
	case isInt && !field.OverflowInt(i):
		field.SetInt(i)
	default:
		return "an integer"
	}
	return ""
}

func storeSlice(field reflect.Value, value any) (want string) {
	items, ok := value.([]any)
	if !ok {
		return "a list, such as [128, 64]"
	}
	list := reflect.MakeSlice(field.Type(), len(items), len(items))
	for i, item := range items {
		if want := store(list.Index(i), item); want != "" {
			return fmt.Sprintf("%s in place %d of the list", want, i+1)
		}
	}
	field.Set(list)
	return ""
}

// NumberOf takes integers too where a float is wanted, but nothing infinite.
func NumberOf(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return 0, false
}

// DescribeValue describes a value for a message.
func DescribeValue(value any) string {
	switch v := value.(type) {
	case string:
		return "the string " + strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	case int64, float64:
		return fmt.Sprint(v)
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = strings.TrimPrefix(DescribeValue(item), "the string ")
		}
		return "the list [" + strings.Join(items, ", ") + "]"
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "a list of tables"
	}
	return fmt.Sprintf("the date or time %v", value)
}

// unknown reports a key that does not exist, with the nearest that does.
func (d *decoder) unknown(from origin, key string, table bool) {
	what := "unknown key"
	if table {
		what = "unknown table"
	}
	meant, hint := suggest(key, allKeys("", d.root))
	d.problems.add(&Problem{File: d.file, Line: from.line, Flag: from.flag, Reason: what + " " + key, Hint: hint, meant: meant})
}

func (d *decoder) report(from origin, key, reason, hint string) {
	d.problems.add(&Problem{File: d.file, Line: from.line, Flag: from.flag, Key: key, Reason: reason, Hint: hint})
}

// fieldOf returns the field of a struct that a key means.
func fieldOf(s reflect.Value, key string) (reflect.Value, bool) {
	i := slices.Index(keysOf(s), key)
	if i < 0 {
		return reflect.Value{}, false
	}
	return s.Field(i), true
}

// keysOf returns the keys of a table, in the order of the struct's fields. The
// fields without a tag, after the others, are not keys.
func keysOf(s reflect.Value) []string {
	var keys []string
	for i := range s.NumField() {
		if key := s.Type().Field(i).Tag.Get("toml"); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// allKeys returns the full paths of all keys and tables.
func allKeys(path string, s reflect.Value) []string {
	var all []string
	for i, key := range keysOf(s) {
		all = append(all, join(path, key))
		if f := s.Field(i); isTableField(f) {
			all = append(all, allKeys(join(path, key), f)...)
		}
	}
	return all
}

// isTableField reports whether a field is a table of the config.
func isTableField(field reflect.Value) bool {
	_, ok := field.Addr().Interface().(valueDecoder)
	return field.Kind() == reflect.Struct && !ok
}

func isTable(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func prefixed(path string, keys []string) []string {
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = join(path, key)
	}
	return full
}
