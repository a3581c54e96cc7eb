package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func noGuard(do func() error) error { return do() }

func sameTensor(a, b tensor) bool {
	return a.name == b.name && a.of == b.of && a.begin == b.begin && a.end == b.end && slices.Equal(a.shape, b.shape)
}

// TestScan reads headers in one pass that other programs write than the library, and leaves
// to encoding/json what is damaged or odd.
func TestScan(t *testing.T) {
	const u8 = `{"dtype":"U8","shape":[2],"data_offsets":[0,2]}`
	for name, c := range map[string]struct {
		header  string
		onePass bool
	}{
		"as the library writes it":     {`{"a":` + u8 + `}`, true},
		"nothing":                      {`{}`, true},
		"blanks":                       {` { "a" : { "dtype" : "U8" , "shape" : [ 2 ] , "data_offsets" : [ 0 , 2 ] } } `, true},
		"members in another order":     {`{"a":{"data_offsets":[3,7],"shape":[2,1],"dtype":"F16"}}`, true},
		"the shape first":              {`{"a":{"shape":[],"data_offsets":[0,1],"dtype":"BOOL"}}`, true},
		"an escape in a type":          {`{"a":{"dtype":"\u00558","shape":[2],"data_offsets":[0,2]}}`, true},
		"metadata last":                {`{"a":` + u8 + `,"__metadata__":{"x":"y","z":""}}`, true},
		"metadata twice":               {`{"__metadata__":{},"__metadata__":{}}`, false},
		"metadata as a tensor":         {`{"__metadata__":{},"__metadata__":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, false},
		"metadata of another kind":     {`{"__metadata__":{"x":1}}`, false},
		"a name twice":                 {`{"a":` + u8 + `,"a":` + u8 + `}`, false},
		"no colon":                     {`{"a"` + u8 + `}`, false},
		"no colon, another order":      {`{"a"{"shape":[2],"dtype":"U8","data_offsets":[0,2]}}`, false},
		"no comma":                     {`{"a":` + u8 + `"b":` + u8 + `}`, false},
		"a comma at the end":           {`{"a":` + u8 + `,}`, false},
		"a comma at the end of one":    {`{"a":{"shape":[2],"dtype":"U8","data_offsets":[0,2],}}`, false},
		"no end":                       {`{"a":` + u8, false},
		"more than the end":            {`{"a":` + u8 + `}}`, false},
		"no brace":                     {`{"a":"dtype":"U8","shape":[2],"data_offsets":[0,2]}`, false},
		"no type":                      {`{"a":{"shape":[2],"data_offsets":[0,2]}}`, false},
		"no shape":                     {`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, false},
		"no offsets":                   {`{"a":{"dtype":"U8","shape":[0]}}`, false},
		"an empty entry":               {`{"a":{}}`, false},
		"a type twice":                 {`{"a":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, false},
		"a shape twice":                {`{"a":{"dtype":"U8","shape":[2],"shape":[2],"data_offsets":[0,2]}}`, false},
		"offsets twice":                {`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"data_offsets":[0,2]}}`, false},
		"another member":               {`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1}}`, false},
		"another member with a list":   {`{"a":{"dtype":"U8","x":[2],"shape":[2],"data_offsets":[0,2]}}`, false},
		"an unknown type":              {`{"a":{"dtype":"u8","shape":[2],"data_offsets":[0,2]}}`, false},
		"no number":                    {`{"a":{"dtype":"U8","shape":[x],"data_offsets":[0,2]}}`, false},
		"three offsets":                {`{"a":{"shape":[2],"dtype":"U8","data_offsets":[0,2,3]}}`, false},
		"a wrong size":                 {`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}}`, false},
		"a wrong size, another order":  {`{"a":{"shape":[2],"dtype":"U8","data_offsets":[0,3]}}`, false},
		"as many dimensions as may be": {`{"a":` + entry("U8", "["+strings.Repeat("1,", maxRank-1)+"1]", "[0,1]") + `}`, true},
		"one more":                     {`{"a":` + entry("U8", "["+strings.Repeat("1,", maxRank)+"1]", "[0,1]") + `}`, false},
		"one more, the last member":    {`{"a":{"dtype":"U8","data_offsets":[0,1],"shape":[` + strings.Repeat("1,", maxRank) + `1]}}`, false},
	} {
		tensors, metadata, err := scanHeader([]byte(c.header), noGuard)
		if (err == nil) != c.onePass {
			t.Errorf("%s: the error is %v", name, err)
		}
		if err != nil {
			continue
		}
		want, wantMetadata, err := parseHeader([]byte(c.header))
		if err != nil || !slices.EqualFunc(want, tensors, sameTensor) || !maps.Equal(metadata, wantMetadata) {
			t.Errorf("%s: got %v %v; encoding/json reads %v %v, %v", name, tensors, metadata, want, wantMetadata, err)
		}
	}
}

// TestUsual takes an entry as the library writes it, and goes back to its beginning where it
// has another form.
func TestUsual(t *testing.T) {
	for text, isUsual := range map[string]bool{
		`{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]}`:                                     true,
		`{"dtype":"FLOAT","shape":[],"data_offsets":[8,32]}`:                                      true,
		`{"dtype":"` + strings.Repeat("F", longestType) + `","shape":[1],"data_offsets":[8,9]}`:   true,
		`{"dtype":"` + strings.Repeat("F", longestType+1) + `","shape":[1],"data_offsets":[8,9]}`: false,
		`{ "dtype":"F32","shape":[2,3],"data_offsets":[8,32]}`:                                    false,
		`{"dtype":"F32", "shape":[2,3],"data_offsets":[8,32]}`:                                    false,
		`{"dtype":"F32","shape":[2,3], "data_offsets":[8,32]}`:                                    false,
		`{"dtype":"F32","shape":[2,x],"data_offsets":[8,32]}`:                                     false,
		`{"dtype":"F32","shape":[2,3],"data_offsets":[8,x]}`:                                      false,
		`{"dtype":"F32","shape":[2,3],"data_offsets":[8,32],"x":1}`:                               false,
		`{"dtype":"f32","shape":[2,3],"data_offsets":[8,32]}`:                                     false,
		`{"dtype":"F32`: false,
	} {
		const before = "xyz"
		s := newScanner([]byte(before+text), len(before+text))
		s.At = len(before)
		got := tensor{name: "w"}
		if ok := s.usual(&got); ok != isUsual {
			t.Errorf("%s: %t", text, ok)
			continue
		}
		if !isUsual {
			if got.name != "w" || got.of != nil || got.shape != nil || s.At != len(before) || s.Bad {
				t.Errorf("%s: %+v is left, at %d", text, got, s.At)
			}
			continue
		}
		want, err := parseTensor("w", []byte(text))
		if want.of == nil { // of the unknown type, whose size is not known either
			want = got
		}
		if got.begin != 8 || s.At != len(before+text) || strings.Contains(text, "F32") && (err != nil || !sameTensor(got, want)) {
			t.Errorf("%s: got %+v, want %+v, %v", text, got, want, err)
		}
	}
}

// TestEntriesIn bounds the memory that is asked for before entries are read.
func TestEntriesIn(t *testing.T) {
	entries := func(n int) []byte {
		var b []byte
		for i := range n {
			b = fmt.Appendf(b, `"layer.%06d.weight":{"dtype":"F32","shape":[1024],"data_offsets":[%09d,%09d]},`, i, i, i)
		}
		return b
	}
	each := len(entries(1))
	pad := func(b []byte, to int) []byte { return append(b, bytes.Repeat([]byte(" "), to-len(b))...) }
	const sample = 64 << 10
	for _, c := range []struct {
		text        []byte
		least, most int
	}{
		{entries(10), 10, 10},
		{pad(entries(100), sample), 100, 100},
		{entries(20_000), 20_000, 20_000 * 11 / 10},
		{bytes.Repeat([]byte(`"data_offsets"`), 100), 100 * 14 / leastEntry, 100 * 14 / leastEntry},
		{append(entries(sample/each), bytes.Repeat([]byte(" "), 9*sample)...), 1, 10 * sample / leastEntry},
	} {
		if n := entriesIn(c.text); n < c.least || n > c.most {
			t.Errorf("%d bytes have some %d entries; want %d to %d", len(c.text), n, c.least, c.most)
		}
	}
}

// TestSecondHalf has the second half of a large header read apart, if it begins at an entry.
func TestSecondHalf(t *testing.T) {
	const fill = 2000                        // bytes of most names, so that there are not many
	header := func(size, first int) []byte { // the first name has so many bytes
		b := []byte(`{"` + strings.Repeat("},", first/2) + `":` + entry("U8", "[0]", "[0,0]"))
		for i := 0; len(b) < size-fill-200; i++ {
			b = fmt.Appendf(b, `,"layer.%0*d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, fill, i)
		}
		return append(append(b, '}'), bytes.Repeat([]byte(" "), size-1-len(b))...)
	}
	atMiddle := header(leastApart, 20)
	middle := bytes.Index(atMiddle[len(atMiddle)/2:], []byte(`},"`)) // blanks move it to the middle itself
	atMiddle = append(atMiddle, bytes.Repeat([]byte(" "), 2*middle)...)
	errApart := errors.New("this is for the second half")
	for name, c := range map[string]struct {
		text    []byte
		isApart bool
	}{
		"large":                     {header(leastApart, 20), true},
		"an entry ends right there": {atMiddle, true},
		"not large":                 {header(leastApart-1, 20), false},
		"a name in the middle":      {header(leastApart, leastApart*3/5), false},
		"no entries any more":       {append(header(leastApart, 20), bytes.Repeat([]byte(" "), leastApart)...), false},
	} {
		slow := func(do func() error) error {
			err := do()
			time.Sleep(time.Millisecond) // it is waited for
			return errors.Join(err, errApart)
		}
		tensors, _, err := scanHeader(c.text, slow)
		if c.isApart != errors.Is(err, errApart) || !c.isApart && err != nil {
			t.Errorf("%s: the error is %v", name, err)
		}
		if c.isApart {
			tensors, _, err = scanHeader(c.text, noGuard)
		}
		want, _, wantErr := parseHeader(c.text)
		if err != nil || wantErr != nil || !slices.EqualFunc(want, tensors, sameTensor) {
			t.Errorf("%s: %d tensors, %v; encoding/json reads %d, %v", name, len(tensors), err, len(want), wantErr)
		}
	}
}

// TestNoEnd has a large header without an end, whose middle is in a name.
func TestNoEnd(t *testing.T) {
	text := `{"` + strings.Repeat("},", leastApart) + `":` + entry("U8", "[0]", "[0,0]")
	if _, _, err := scanHeader([]byte(text), noGuard); err == nil {
		t.Error("no error")
	}
}

// TestMetadataInTheSecondHalf is found, too.
func TestMetadataInTheSecondHalf(t *testing.T) {
	b := []byte("{")
	for i := 0; len(b) < leastApart; i++ {
		b = fmt.Appendf(b, `"layer.%02000d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`, i)
	}
	b = append(b, `"__metadata__":{"a":"b"}}`...)
	_, metadata, err := scanHeader(b, noGuard)
	if err != nil || !maps.Equal(metadata, map[string]string{"a": "b"}) {
		t.Errorf("got %v, %v", metadata, err)
	}
}

// TestSecondHalfHasEnded when the header is given up: its memory is that of a file that is
// no longer mapped then.
func TestSecondHalfHasEnded(t *testing.T) {
	b := []byte(`{"x":1,`)
	for i := 0; len(b) < leastApart; i++ {
		b = fmt.Appendf(b, `"layer.%02000d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`, i)
	}
	hasEnded := false
	_, _, err := scanHeader(append(b, '}'), func(do func() error) error {
		time.Sleep(10 * time.Millisecond)
		hasEnded = true
		return do()
	})
	if err == nil || !hasEnded {
		t.Errorf("%v; the other goroutine has ended: %t", err, hasEnded)
	}
}
