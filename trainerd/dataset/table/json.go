package table

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// jsonSample is how many objects are read to know the columns, and jsonSampleBytes
// after how many bytes no more are.
const (
	jsonSample      = 1000
	jsonSampleBytes = 64 << 20
)

// maxNesting bounds the objects within objects.
const maxNesting = 32

// beginsJSON reports whether a text begins with an object, or an array of them.
func beginsJSON(h *head) bool {
	text := bytes.TrimLeft(h.text, " \t\r\n")
	if bytes.HasPrefix(text, []byte{'['}) {
		text = bytes.TrimLeft(text[1:], " \t\r\n")
	}
	if !bytes.HasPrefix(text, []byte{'{'}) {
		return false
	}
	text = bytes.TrimLeft(text[1:], " \t\r\n")
	return len(text) > 0 && (text[0] == '"' || text[0] == '}')
}

// jsonRows are the objects of a file.
type jsonRows struct {
	d       *json.Decoder
	source  *bounded // of d; nil for an object within an object
	row     Row
	array   bool
	columns map[string]int
	names   []string
	sampled [][]string // rows that were read to know the columns, from the first
	ended   error      // what ended the sample
	known   bool       // the columns; others are not used
}

// bounded reads a record of limited length: json.Decoder holds a value as a whole,
// however long.
type bounded struct {
	r    io.Reader
	read int // since the record began
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.read > maxRecord {
		return 0, &Error{Reason: "the object is longer than 16 MiB", Hint: "write an object for each row"}
	}
	n, err := b.r.Read(p[:min(len(p), 1<<20)])
	b.read += n
	return n, err
}

// newJSON begins to read JSON.
func newJSON(r io.Reader, o Options) (*Table, error) {
	plain, err := decode(r, o.Encoding)
	if err != nil {
		return nil, err
	}
	if first, err := firstByte(plain); err == nil && first == '{' {
		plain = bufio.NewReader(unwrapSingle(plain))
	}
	return newJSONRows(plain, o)
}

// firstByte returns the first byte that is not a blank, without taking it.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		c, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !bytes.Contains([]byte(" \t\r\n"), c) {
			return c[0], nil
		}
		r.Discard(1)
	}
}

// newJSONRows reads objects in lines or in an array.
func newJSONRows(plain *bufio.Reader, o Options) (*Table, error) {
	source := &bounded{r: plain}
	j := &jsonRows{d: json.NewDecoder(source), source: source, columns: make(map[string]int)}
	j.d.UseNumber()
	for {
		c, err := plain.Peek(1)
		if err != nil || !bytes.Contains([]byte(" \t\r\n["), c) {
			break
		}
		j.array = j.array || c[0] == '['
		plain.Discard(1)
		if c[0] == '[' {
			// The decoder is to see a list of values, and not wait for its end.
			j.d = json.NewDecoder(io.MultiReader(bytes.NewReader([]byte{'['}), source))
			j.d.UseNumber()
			j.d.Token()
			break
		}
	}
	for len(j.sampled) < jsonSample && j.d.InputOffset() < jsonSampleBytes && j.ended == nil {
		if err := j.read(); err != nil {
			j.ended = err
			break
		}
		j.sampled = append(j.sampled, j.row.Fields)
		j.row.Fields = nil
	}
	j.known, j.row.Number = true, 0
	t := &Table{Options: o, Columns: j.names, next: j.next}
	if slices.ContainsFunc(j.sampled, hasList) {
		t.spreadLists()
	}
	return t, nil
}

// hasList reports whether one of some fields is an array.
func hasList(fields []string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "[") })
}

func (j *jsonRows) next() (*Row, error) {
	if len(j.sampled) > 0 {
		j.row.Fields, j.sampled = j.sampled[0], j.sampled[1:]
		for len(j.row.Fields) < len(j.names) {
			j.row.Fields = append(j.row.Fields, "")
		}
		j.row.Number++
		return &j.row, nil
	}
	if j.ended != nil {
		return nil, j.ended
	}
	if err := j.read(); err != nil {
		j.ended = err
		return nil, err
	}
	return &j.row, nil
}

// read reads an object into row.
func (j *jsonRows) read() error {
	if j.array && !j.d.More() {
		if _, err := j.d.Token(); err != nil {
			return j.fault(err)
		}
		return io.EOF
	}
	j.row.Number++
	j.source.read = 0
	begin, err := j.d.Token()
	if err == io.EOF && !j.array {
		return io.EOF
	}
	if err != nil {
		return j.fault(err)
	}
	if begin != json.Delim('{') {
		return j.fault(errors.New("an object is wanted, with a key for each column"))
	}
	if j.row.Fields = j.row.Fields[:0]; j.known {
		j.row.Fields = append(j.row.Fields, make([]string, len(j.names))...)
	}
	return j.object("", 0)
}

// object reads the keys and values of an object, up to its end.
func (j *jsonRows) object(prefix string, depth int) error {
	if depth > maxNesting {
		return j.fault(errors.New("objects are nested too deeply"))
	}
	for j.d.More() {
		key, err := j.d.Token()
		if err != nil {
			return j.fault(err)
		}
		name := fmt.Sprint(prefix, key)
		var raw json.RawMessage
		if err := j.d.Decode(&raw); err != nil {
			return j.fault(err)
		}
		if err := j.value(name, raw, depth); err != nil {
			return err
		}
	}
	if _, err := j.d.Token(); err != nil {
		return j.fault(err)
	}
	return nil
}

// value stores the value of a key.
func (j *jsonRows) value(name string, raw json.RawMessage, depth int) error {
	var text string
	switch raw[0] {
	case '{':
		inner := &jsonRows{d: json.NewDecoder(bytes.NewReader(raw)), row: j.row, columns: j.columns, names: j.names, known: j.known}
		inner.d.Token()
		err := inner.object(name+".", depth+1)
		j.row, j.names = inner.row, inner.names
		return err
	case '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return j.fault(err)
		}
	case 'n': // null
	case '[':
		if text = string(raw); strings.Contains(text, `"`) {
			var err error
			if text, err = wordsOf(raw); err != nil {
				return j.fault(err)
			}
		}
	default:
		text = string(raw)
	}
	name = Compose(name)
	at, ok := j.columns[name]
	if !ok {
		if j.known {
			return nil
		}
		at = len(j.names)
		j.columns[name] = at
		j.names = append(j.names, name)
	}
	for len(j.row.Fields) <= at {
		j.row.Fields = append(j.row.Fields, "")
	}
	j.row.Fields[at] = text
	return nil
}

func (j *jsonRows) fault(err error) *Error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	var e *Error
	if errors.As(err, &e) {
		e.Record = j.row.Number
		return e
	}
	return &Error{Record: j.row.Number, Reason: "is not JSON lines or an array of objects", Err: err, Hint: "write an object with the same keys for each row"}
}
