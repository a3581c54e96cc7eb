package child

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseJSON reads a line that is a JSON object, or returns nil.
func parseJSON(line string) *Report {
	d := json.NewDecoder(strings.NewReader(quoteSpecials(line)))
	d.UseNumber()
	d.Token() // the brace
	p := jsonParser{decoder: d}
	if !p.object("", 1) {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil // something follows the object
	}
	return p.done()
}

type jsonParser struct {
	decoder *json.Decoder
	collector
}

// object reads the rest of an object whose brace has been read.
func (p *jsonParser) object(prefix string, depth int) bool {
	for p.decoder.More() {
		t, _ := p.decoder.Token()
		key, ok := t.(string) // else it is an error: keys are strings
		if !ok || !p.value(prefix+key, depth) {
			return false
		}
	}
	_, err := p.decoder.Token()
	return err == nil
}

// value reads what follows a key.
func (p *jsonParser) value(name string, depth int) bool {
	t, err := p.decoder.Token()
	if err != nil {
		return false
	}
	switch t := t.(type) {
	case json.Number:
		v, err := strconv.ParseFloat(t.String(), 64)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			p.number(name, v)
		}
	case string:
		if v, ok := specials[t]; ok {
			p.number(name, v)
		}
	case json.Delim:
		if depth == maxDepth {
			return false
		}
		if t == '{' {
			return p.object(name+"/", depth+1)
		}
		return p.list(depth + 1)
	}
	return true
}

// number records a number; wall_time is not a curve.
func (p *jsonParser) number(name string, v float64) {
	if name != "wall_time" {
		p.add(name, v)
		return
	}
	if v > 0 && v < 1<<33 { // up to the year 2242
		whole, part := math.Modf(v)
		p.report.Time = time.Unix(int64(whole), int64(part*1e9))
	}
}

// list skips the rest of a list.
func (p *jsonParser) list(depth int) bool {
	for p.decoder.More() {
		t, err := p.decoder.Token()
		if err != nil || depth == maxDepth {
			return false
		}
		delim, ok := t.(json.Delim)
		switch {
		case !ok:
		case delim == '[' && !p.list(depth+1):
			return false
		case delim == '{' && !p.ignored(depth+1):
			return false
		}
	}
	_, err := p.decoder.Token()
	return err == nil
}

// ignored skips the rest of an object in a list.
func (p *jsonParser) ignored(depth int) bool {
	other := jsonParser{decoder: p.decoder}
	return other.object("", depth)
}

// mark begins the strings that represent numbers which JSON lacks. No program writes it.
const mark = "\x7ftrainerd:"

var specials = map[string]float64{
	mark + "NaN": math.NaN(), mark + "Infinity": math.Inf(1), mark + "-Infinity": math.Inf(-1),
}

// quoteSpecials puts NaN, Infinity and -Infinity, which many writers of JSON
// leave bare, in quotes.
func quoteSpecials(line string) string {
	if !strings.Contains(line, "NaN") && !strings.Contains(line, "Infinity") {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		if line[i] == '"' {
			end := i + stringLen(line[i:])
			b.WriteString(line[i:end])
			i = end
			continue
		}
		word := specialAt(line[i:])
		if word != "" {
			b.WriteString(`"` + mark + word + `"`)
			i += len(word)
			continue
		}
		b.WriteByte(line[i])
		i++
	}
	return b.String()
}

func specialAt(s string) string {
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if strings.HasPrefix(s, word) {
			return word
		}
	}
	return ""
}

// stringLen returns the length of the string literal that s begins with.
func stringLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}
