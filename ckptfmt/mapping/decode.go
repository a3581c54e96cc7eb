package mapping

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/trainerd/trainerd/ckptfmt/names"
	"github.com/trainerd/trainerd/internal/tomlguard"
)

// Rest says what happens to tensors that no rule matches.
type Rest string

// The choices: leftover tensors are an error, or are kept under their names, or
// dropped.
const (
	RestError Rest = "error"
	RestKeep  Rest = "keep"
	RestDrop  Rest = "drop"
)

// Map is a list of rules. It is safe for concurrent use, except for [Map.Rest].
type Map struct {
	// Names is the kind of names that the rules are about.
	Names names.Kind
	Rest  Rest

	name      string
	separator []string
	rules     []*compiled
}

// document is a map as it is written.
type document struct {
	About     string     `toml:"about" json:"about"`
	Names     names.Kind `toml:"names" json:"names"`
	Rest      Rest       `toml:"rest" json:"rest"`
	Separator []string   `toml:"separator" json:"separator"`
	Heads     int64      `toml:"heads" json:"heads"`
	Rules     []Rule     `toml:"rule" json:"rule"`
}

//go:embed maps/*.toml
var ready embed.FS

// Ready returns the text of a ready map.
func Ready(name string) ([]byte, bool) {
	b, err := ready.ReadFile(path.Join("maps", name+".toml"))
	return b, err == nil
}

// ReadyNames returns the names of the ready maps, and the purpose of each.
func ReadyNames() (list [][2]string, err error) {
	entries, err := fs.ReadDir(ready, "maps")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".toml")
		b, _ := Ready(name)
		var d document
		if _, err := tomlguard.Decode(string(b), &d); err != nil {
			return nil, err
		}
		list = append(list, [2]string{name, d.About})
	}
	return list, nil
}

// maxFile is the size of the largest document that is read.
const maxFile = 16 << 20

// Open reads a file, or the ready map of that name if there is no such file.
func Open(name string) (*Map, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if b, ok := Ready(name); ok {
			return Parse(name, b)
		}
		return nil, fmt.Errorf("there is no map %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("map %s has %d bytes; want at most %d", name, info.Size(), maxFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, b)
}

// Parse parses a document: JSON if it begins with a brace, else TOML. name is its
// file name.
func Parse(name string, text []byte) (*Map, error) {
	var d document
	var err error
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		err = decodeJSON(text, &d)
	} else {
		err = decodeTOML(string(text), &d)
	}
	var m *Map
	if err == nil {
		m, err = newMap(name, &d)
	}
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	return m, nil
}

func decodeJSON(text []byte, d *document) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(d); err != nil {
		line := 1 + bytes.Count(text[:jsonPlace(text, err)], []byte("\n"))
		return fmt.Errorf("line %d: %s", line, strings.TrimPrefix(err.Error(), "json: "))
	}
	if in.More() {
		return errors.New("there is more after the JSON object")
	}
	return nil
}

// jsonPlace returns where in a text an error of package json is.
func jsonPlace(text []byte, err error) int {
	at := len(text)
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	_, field, unknown := strings.Cut(err.Error(), "unknown field ")
	switch {
	case errors.As(err, &syntax):
		at = int(syntax.Offset)
	case errors.As(err, &wrong):
		at = int(wrong.Offset)
	case unknown: // its error has the name alone
		at = bytes.Index(text, []byte(field))
	}
	return max(0, min(at, len(text)))
}

func decodeTOML(text string, d *document) error {
	meta, err := tomlguard.Decode(text, d)
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
	}
	if err != nil {
		return err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("unknown key %q", unknown[0].String())
	}
	return nil
}

func newMap(name string, d *document) (*Map, error) {
	m := &Map{Names: d.Names, Rest: d.Rest, name: name, separator: d.Separator}
	if m.Names == "" {
		m.Names = names.Auto
	}
	if m.Rest == "" {
		m.Rest = RestError
	}
	switch {
	case !slices.Contains([]names.Kind{names.Auto, names.Object, names.Variable, names.Keras}, m.Names):
		return nil, fmt.Errorf("names is %q; want auto, object, variable or keras", m.Names)
	case !m.Rest.Valid():
		return nil, fmt.Errorf("rest is %q; want error, keep or drop", m.Rest)
	case len(d.Separator) != 0 && (len(d.Separator) != 2 || d.Separator[0] == ""):
		return nil, fmt.Errorf("separator is %q; want two texts: what is replaced, and by what", d.Separator)
	case len(d.Rules) == 0:
		return nil, errors.New("there is no [[rule]]")
	}
	for i, r := range d.Rules {
		c, err := compile(r, i+1)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		m.rules = append(m.rules, c)
	}
	if d.Heads < 0 {
		return nil, fmt.Errorf("heads is %d; want the number of heads of attention layers", d.Heads)
	}
	m.SetHeads(d.Heads)
	return m, nil
}

// SetHeads sets the value of "heads" in shapes; 0 means unknown. Call it before
// using the map.
func (m *Map) SetHeads(n int64) {
	for _, c := range m.rules {
		for _, s := range c.steps {
			for _, factors := range s.Shape {
				for i := range factors {
					if factors[i].Heads {
						factors[i].Number = n
					}
				}
			}
		}
	}
}

// Valid reports whether r is one of the constants.
func (r Rest) Valid() bool { return r == RestError || r == RestKeep || r == RestDrop }

// Names is a name, or a list of them.
type Names []string

// UnmarshalTOML implements [toml.Unmarshaler].
func (n *Names) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case string:
		*n = Names{v}
		return nil
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return fmt.Errorf("want names, got %v", e)
			}
			*n = append(*n, s)
		}
		return nil
	}
	return fmt.Errorf("want a name or a list of names, got %v", v)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Names) UnmarshalJSON(b []byte) error { return unmarshalJSON(b, n.UnmarshalTOML) }

// Join is an axis, or Add.
type Join struct {
	Add  bool
	Axis int
}

// UnmarshalTOML implements [toml.Unmarshaler].
func (j *Join) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		j.Axis = int(v)
		return nil
	case string:
		if j.Add = v == "add"; j.Add {
			return nil
		}
	}
	return fmt.Errorf(`join must be an axis or "add", got %v`, v)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (j *Join) UnmarshalJSON(b []byte) error { return unmarshalJSON(b, j.UnmarshalTOML) }

// Dims are the dimensions of a shape: each is a product of numbers and
// dimensions of another shape.
type Dims [][]Factor

// Factor is a number, the dimension Dim of another shape, or the number of heads of
// an attention layer, which is in no shape.
type Factor struct {
	Number int64
	Dim    int // -1: it is the number
	Heads  bool
}

// UnmarshalTOML implements [toml.Unmarshaler].
func (d *Dims) UnmarshalTOML(v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("shape must be a list, got %v", v)
	}
	*d = Dims{}
	for _, e := range list {
		switch e := e.(type) {
		case int64:
			*d = append(*d, []Factor{{Number: e, Dim: -1}})
		case string:
			product, err := parseProduct(e)
			if err != nil {
				return err
			}
			*d = append(*d, product)
		default:
			return fmt.Errorf(`shape must hold numbers and texts such as "d0*d1", got %v`, e)
		}
	}
	return nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Dims) UnmarshalJSON(b []byte) error { return unmarshalJSON(b, d.UnmarshalTOML) }

func parseProduct(text string) ([]Factor, error) {
	var list []Factor
	for part := range strings.SplitSeq(text, "*") {
		if part = strings.TrimSpace(part); part == "heads" {
			list = append(list, Factor{Dim: -1, Heads: true})
			continue
		}
		number, isDim := strings.CutPrefix(part, "d")
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf(`shape: %q is no product such as "d0*d1" or "4*d1"`, text)
		}
		if isDim {
			list = append(list, Factor{Dim: int(n)})
		} else {
			list = append(list, Factor{Number: n, Dim: -1})
		}
	}
	return list, nil
}

// unmarshalJSON decodes as TOML does, with integers for whole numbers.
func unmarshalJSON(b []byte, into func(any) error) error {
	in := json.NewDecoder(bytes.NewReader(b))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		return err
	}
	return into(integers(v))
}

func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	}
	return v
}
