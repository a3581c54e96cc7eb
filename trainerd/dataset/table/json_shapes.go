package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// A file of a single object may have all rows in it: as pandas writes a DataFrame
// unless it is asked for records, or as an array of objects with words about them.
//
//	{"a": {"0": 1, "1": 2}, "b": {"0": 3, "1": 4}}          columns of rows
//	{"0": {"a": 1, "b": 3}, "1": {"a": 2, "b": 4}}          rows of columns
//	{"a": [1, 2], "b": [3, 4]}                              lists
//	{"columns": ["a", "b"], "data": [[1, 3], [2, 4]]}       split
//	{"count": 2, "data": [{"a": 1, "b": 3}, ...]}           an array in an object

// maxSingle bounds such a file; longer ones are read as a single row.
const maxSingle = 256 << 20

// rowLimit ends the reading of an object that is too long for a row and cannot hold
// rows: in those that do, nearly all is in arrays and objects, as many short values.
type rowLimit struct {
	r      io.Reader
	depth  int
	quoted bool
	escape bool
	outer  int // bytes that are in no array or object within the object
	value  int // bytes of the key or value that is being read
}

func (l *rowLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p[:min(len(p), 1<<20)])
	for _, c := range p[:n] {
		l.add(c)
	}
	if l.outer > maxRecord || l.value > maxRecord {
		return n, errLongRow
	}
	return n, err
}

func (l *rowLimit) add(c byte) {
	l.value++
	if l.depth < 2 {
		l.outer++
	}
	switch {
	case l.escape:
		l.escape = false
	case l.quoted:
		l.escape, l.quoted = c == '\\', c != '"'
	case c == '"':
		l.quoted = true
	case c == '{' || c == '[':
		l.depth++
		l.value = 0
	case c == '}' || c == ']':
		l.depth--
		l.value = 0
	case c == ',' || c == ':':
		l.value = 0
	}
}

// errLongRow is not seen by users: the object is then read as a row, which has a limit.
var errLongRow = errors.New("too long for a row")

// member is a key of an object with its value.
type member struct {
	name string
	raw  json.RawMessage
}

// members returns the keys and values of an object, in its order; false for any
// other text.
func members(raw []byte) (all []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: key.(string)}
		if err := d.Decode(&m.raw); err != nil {
			return nil, false
		}
		all = append(all, m)
	}
	return all, true
}

// unwrapSingle returns what reads the rows of a single object as an array, or r with
// what was read of it if there are more objects, or if it is a row.
func unwrapSingle(r io.Reader) io.Reader {
	var read bytes.Buffer
	d := json.NewDecoder(io.TeeReader(io.LimitReader(&rowLimit{r: r}, maxSingle), &read))
	var raw json.RawMessage
	asItWas := func() io.Reader { return io.MultiReader(&read, r) }
	if d.Decode(&raw) != nil {
		return asItWas()
	}
	if _, err := d.Token(); err != io.EOF || read.Len() >= maxSingle {
		return asItWas()
	}
	all, ok := members(raw)
	if !ok {
		return asItWas()
	}
	for _, shape := range []func([]member) ([]byte, bool){splitRows, wrappedRows, listRows, nestedRows} {
		if text, ok := shape(all); ok {
			return bytes.NewReader(text)
		}
	}
	return asItWas()
}

// arrayOf appends rows as an array of objects.
type arrayOf struct{ bytes.Buffer }

func (a *arrayOf) row(names []string, values []json.RawMessage) {
	if a.Len() == 0 {
		a.WriteByte('[')
	} else {
		a.WriteByte(',')
	}
	for i, name := range names {
		if i == 0 {
			a.WriteByte('{')
		} else {
			a.WriteByte(',')
		}
		key, _ := json.Marshal(name) // a string can be marshalled
		a.Write(key)
		a.WriteByte(':')
		if values[i] == nil {
			a.WriteString("null")
		}
		a.Write(values[i])
	}
	a.WriteByte('}')
}

func (a *arrayOf) text() []byte {
	a.WriteByte(']')
	return a.Bytes()
}

// splitRows reads columns and data.
func splitRows(all []member) ([]byte, bool) {
	var columns []string
	var data [][]json.RawMessage
	for _, m := range all {
		var err error
		switch m.name {
		case "columns":
			err = json.Unmarshal(m.raw, &columns)
		case "data":
			err = json.Unmarshal(m.raw, &data)
		case "index":
		default:
			return nil, false
		}
		if err != nil {
			return nil, false
		}
	}
	if len(columns) == 0 || len(data) == 0 {
		return nil, false
	}
	var a arrayOf
	for _, row := range data {
		if len(row) != len(columns) {
			return nil, false
		}
		a.row(columns, row)
	}
	return a.text(), true
}

// wrappedRows returns the only array of objects among the values.
func wrappedRows(all []member) (found []byte, ok bool) {
	for _, m := range all {
		if !beginsWith(m.raw, '[', '{') {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = m.raw
	}
	return found, found != nil
}

func beginsWith(raw []byte, first, second byte) bool {
	rest := bytes.TrimLeft(raw, " \t\r\n")
	if len(rest) == 0 || rest[0] != first {
		return false
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	return len(rest) > 0 && rest[0] == second
}

// listRows reads a list of the same length for each column.
func listRows(all []member) ([]byte, bool) {
	names, columns := make([]string, len(all)), make([][]json.RawMessage, len(all))
	for i, m := range all {
		names[i] = m.name
		if m.raw[0] != '[' || json.Unmarshal(m.raw, &columns[i]) != nil || len(columns[i]) != len(columns[0]) || len(columns[i]) < 2 {
			return nil, false
		}
	}
	if len(all) < 2 {
		return nil, false
	}
	var a arrayOf
	values := make([]json.RawMessage, len(all))
	for row := range columns[0] {
		for i := range columns {
			values[i] = columns[i][row]
		}
		a.row(names, values)
	}
	return a.text(), true
}

// nestedRows reads an object of objects with the same keys. Those that number rows
// are the rows, else the more numerous.
func nestedRows(all []member) ([]byte, bool) {
	inner := make([][]member, len(all))
	for i, m := range all {
		var ok bool
		if inner[i], ok = members(m.raw); !ok || len(inner[i]) != len(inner[0]) || len(inner[i]) < 2 {
			return nil, false
		}
		for k, cell := range inner[i] {
			if cell.name != inner[0][k].name || beginsObject(cell.raw) {
				return nil, false
			}
		}
	}
	if len(all) < 2 {
		return nil, false
	}
	if !numbersRows(inner[0]) && (numbersRows(all) || len(all) > len(inner[0])) {
		return rowsOfColumns(all, inner), true
	}
	return columnsOfRows(all, inner), true
}

func beginsObject(raw []byte) bool { return raw[0] == '{' }

// numbersRows reports whether the keys are numbers.
func numbersRows(all []member) bool {
	for _, m := range all {
		if _, err := strconv.Atoi(m.name); err != nil {
			return false
		}
	}
	return true
}

func rowsOfColumns(rows []member, inner [][]member) []byte {
	var a arrayOf
	names, values := make([]string, len(inner[0])), make([]json.RawMessage, len(inner[0]))
	for i := range rows {
		for k, cell := range inner[i] {
			names[k], values[k] = cell.name, cell.raw
		}
		a.row(names, values)
	}
	return a.text()
}

func columnsOfRows(columns []member, inner [][]member) []byte {
	var a arrayOf
	names, values := make([]string, len(columns)), make([]json.RawMessage, len(columns))
	for row := range inner[0] {
		for i, c := range columns {
			names[i], values[i] = c.name, inner[i][row].raw
		}
		a.row(names, values)
	}
	return a.text()
}
