package ckptdir

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
)

// The state file is a CheckpointState in protobuf's text form:
//
//	model_checkpoint_path: "model.ckpt-40"
//	all_model_checkpoint_paths: "model.ckpt-30"
//	all_model_checkpoint_paths: "model.ckpt-40"
//	all_model_checkpoint_timestamps: 1700000060.1234567
//	all_model_checkpoint_timestamps: 1700000061.5
//	last_preserved_timestamp: 1699999999.5
//
// People edit it. TensorFlow reads it with protobuf's Python text format, and
// this reader accepts and refuses what that does.

const (
	fieldModelPath     = "model_checkpoint_path"
	fieldAllPaths      = "all_model_checkpoint_paths"
	fieldTimestamps    = "all_model_checkpoint_timestamps"
	fieldLastPreserved = "last_preserved_timestamp"
)

// FormatState returns the text of s, byte for byte as TensorFlow writes it.
func FormatState(s *tfpb.CheckpointState) []byte {
	var b []byte
	line := func(field, value string) { b = append(b, field+": "+value+"\n"...) }
	if s.ModelCheckpointPath != "" {
		line(fieldModelPath, quote(s.ModelCheckpointPath))
	}
	for _, p := range s.AllModelCheckpointPaths {
		line(fieldAllPaths, quote(p))
	}
	for _, t := range s.AllModelCheckpointTimestamps {
		line(fieldTimestamps, formatDouble(t))
	}
	if t := s.LastPreservedTimestamp; math.Float64bits(t) != 0 {
		line(fieldLastPreserved, formatDouble(t))
	}
	return b
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '"' || c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// formatDouble writes a number as Python's repr does: the shortest digits that
// read back the same, always with a point or an exponent.
func formatDouble(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	e := strconv.FormatFloat(v, 'e', -1, 64)
	exp, err := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if err == nil && (exp < -4 || exp >= 16) {
		return e
	}
	f := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(f, ".") {
		f += ".0"
	}
	return f
}

// ParseState reads the text of a state file. An error matches [ErrState] and
// gives the line. A file that names no checkpoint is not an error here.
func ParseState(text []byte) (*tfpb.CheckpointState, error) {
	p := &stateParser{}
	if i := invalidUTF8(text); i >= 0 {
		return nil, fmt.Errorf("%w: %w: byte %d", ErrState, ErrStateEncoding, i)
	}
	p.lines = strings.Split(string(text), "\n")
	s := &tfpb.CheckpointState{}
	p.next()
	for p.token != "" {
		if err := p.field(s); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrState, p.tokenLine+1, err)
		}
	}
	return s, nil
}

func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// stateParser walks the tokens of a text. A token does not span lines.
type stateParser struct {
	lines     []string
	line, col int
	token     string // "" at the end
	tokenLine int
}

var tokenPattern = lazyregexp.New(`^(?:[a-zA-Z_][0-9a-zA-Z_+-]*` + // identifier
	`|(?:[0-9+-]|\.[0-9])[0-9a-zA-Z_.+-]*` + // number
	`|'[^'\n\\]*(?:\\.[^'\n\\]*)*(?:'|\\?$)` + // strings, which may lack their end
	`|"[^"\n\\]*(?:\\.[^"\n\\]*)*(?:"|\\?$))`)

// next goes to the next token.
func (p *stateParser) next() {
	p.skipSpace()
	p.tokenLine = min(p.line, len(p.lines)-1)
	if p.line >= len(p.lines) {
		p.token = ""
		return
	}
	rest := p.lines[p.line][p.col:]
	p.token = tokenPattern().FindString(rest)
	if p.token == "" {
		_, n := utf8.DecodeRuneInString(rest)
		p.token = rest[:n]
	}
	p.col += len(p.token)
}

func (p *stateParser) skipSpace() {
	for ; p.line < len(p.lines); p.line, p.col = p.line+1, 0 {
		rest := strings.TrimLeftFunc(p.lines[p.line][p.col:], isPythonSpace)
		if rest != "" && rest[0] != '#' {
			p.col = len(p.lines[p.line]) - len(rest)
			return
		}
	}
}

// isPythonSpace also counts the separators 1c to 1f as white space.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func (p *stateParser) consume(token string) error {
	if p.token != token {
		return fmt.Errorf("expected %q, found %q", token, p.token)
	}
	p.next()
	return nil
}

// try goes past the token if it is the next one.
func (p *stateParser) try(token string) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

// field reads "name: value" or "name: [value, ...]" and what may separate it
// from the next.
func (p *stateParser) field(s *tfpb.CheckpointState) error {
	name := p.token
	set, repeated, err := p.setter(s, name)
	if err != nil {
		return err
	}
	p.next()
	if err := p.consume(":"); err != nil {
		return err
	}
	if repeated && p.token == "[" {
		err = p.list(set)
	} else {
		err = set()
	}
	if err != nil {
		return err
	}
	if !p.try(",") {
		p.try(";")
	}
	return nil
}

func (p *stateParser) list(set func() error) error {
	p.next() // past the [
	if p.try("]") {
		return nil
	}
	for {
		if err := set(); err != nil {
			return err
		}
		if p.try("]") {
			return nil
		}
		if err := p.consume(","); err != nil {
			return err
		}
	}
}

// setter returns what reads one value of a field.
func (p *stateParser) setter(s *tfpb.CheckpointState, name string) (set func() error, repeated bool, err error) {
	str := func(put func(string)) func() error {
		return func() error {
			v, err := p.string()
			put(v)
			return err
		}
	}
	num := func(put func(float64)) func() error {
		return func() error {
			v, err := p.double()
			put(v)
			return err
		}
	}
	switch name {
	case fieldModelPath:
		return str(func(v string) { s.ModelCheckpointPath = v }), false, nil
	case fieldAllPaths:
		return str(func(v string) { s.AllModelCheckpointPaths = append(s.AllModelCheckpointPaths, v) }), true, nil
	case fieldTimestamps:
		return num(func(v float64) { s.AllModelCheckpointTimestamps = append(s.AllModelCheckpointTimestamps, v) }), true, nil
	case fieldLastPreserved:
		return num(func(v float64) { s.LastPreservedTimestamp = v }), false, nil
	}
	return nil, false, fmt.Errorf("%q is not a field of the checkpoint state", name)
}

// string reads one or more strings side by side.
func (p *stateParser) string() (string, error) {
	var b []byte
	for n := 0; ; n++ {
		if p.token == "" || p.token[0] != '"' && p.token[0] != '\'' {
			if n == 0 {
				return "", fmt.Errorf("expected a string, found %q", p.token)
			}
			break
		}
		last := len(p.token) - 1
		if last < 1 || p.token[last] != p.token[0] {
			return "", errors.New("string has no end on its line")
		}
		var err error
		if b, err = appendUnescaped(b, p.token[1:last]); err != nil {
			return "", err
		}
		p.next()
	}
	if !utf8.Valid(b) {
		return "", errors.New("string is not UTF-8")
	}
	return string(b), nil
}

var (
	leadingZero = lazyregexp.New(`^-?0[0-9]`)
	infinity    = lazyregexp.New(`(?i)^-?inf(?:inity)?f$`)
	nan         = lazyregexp.New(`(?i)^[+-]?nan$`)
	// pythonFloat is what Python's float accepts of the tokens there are:
	// digits may be grouped by single underscores.
	pythonFloat = lazyregexp.New(`(?i)^[+-]?(?:inf|infinity|nan|(?:\d(?:_?\d)*\.?(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:e[+-]?\d(?:_?\d)*)?)$`)
)

func (p *stateParser) double() (float64, error) {
	text := p.token
	if leadingZero().MatchString(text) {
		return 0, fmt.Errorf("number %q begins with 0", text)
	}
	if !pythonFloat().MatchString(text) {
		text = strings.TrimRight(text, "fF") // as in C: 1.5f
		if infinity().MatchString(p.token) {
			text = p.token[:len(p.token)-1] // its own f stays
		}
	}
	if !pythonFloat().MatchString(text) {
		return 0, fmt.Errorf("expected a number, found %q", p.token)
	}
	if nan().MatchString(text) {
		p.next()
		return math.NaN(), nil
	}
	v, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64) // its form is right, and a huge number is infinite
	p.next()
	return v, nil
}
