package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
)

func checkpoint(t testing.TB, name string) []ckptfmt.Part {
	t.Helper()
	r, err := ckptfmt.Open(filepath.Join("../../fixtures/ckpt_v2", name, "model.ckpt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	parts, err := ckptfmt.Parts(r)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func file(header string, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func read(b []byte) (*Reader, error) {
	return NewReader(bytes.NewReader(b), int64(len(b)), "x.safetensors")
}

func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"dtypes", "scalars_empty", "one"} {
		want := map[string]ckptfmt.Part{}
		var list []ckptfmt.Part
		for _, p := range checkpoint(t, name) {
			if Check(p) == nil {
				want[p.Name] = p
				list = append(list, p)
			}
		}
		var b bytes.Buffer
		if err := Write(t.Context(), &b, list, map[string]string{"format": "tf", "note": "a\"b\n"}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := read(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff(map[string]string{"format": "tf", "note": "a\"b\n"}, r.Metadata()); d != "" {
			t.Errorf("metadata: %s", d)
		}
		if len(r.Parts()) != len(want) || len(want) == 0 {
			t.Fatalf("%s: %d tensors, want %d", name, len(r.Parts()), len(want))
		}
		for _, p := range r.Parts() {
			w := want[p.Name]
			a, err := w.Load()
			if err != nil {
				t.Fatal(err)
			}
			b, err := p.Load()
			if err != nil || b.DType != a.DType || len(a.Shape)+len(b.Shape) > 0 && !gocmp.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) {
				t.Errorf("%s: %q: got %v, %v; want %v", name, p.Name, b, err, a)
			}
		}
	}
}

// The library's own bytes, read and written again.
func TestGolden(t *testing.T) {
	header := `{"__metadata__":{"a":"y"},"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F64","shape":[],"data_offsets":[8,16]},` +
		`"b/é\"":{"dtype":"F32","shape":[3],"data_offsets":[16,28]},"a\tb` + "\u2028\x7f" + `\u0001":{"dtype":"I32","shape":[1],"data_offsets":[28,32]},` +
		`"bf":{"dtype":"BF16","shape":[2],"data_offsets":[32,36]},"z":{"dtype":"I8","shape":[2,0],"data_offsets":[36,36]},` +
		`"q":{"dtype":"BOOL","shape":[1],"data_offsets":[36,37]}}`
	header += strings.Repeat(" ", (headerAlign-len(header)%headerAlign)%headerAlign)
	golden := file(header, strings.Repeat("\x01", 37))
	r, err := read(golden)
	if err != nil {
		t.Fatal(err)
	}
	parts := r.Parts()
	parts[0], parts[3] = parts[3], parts[0]
	var b bytes.Buffer
	if err := Write(t.Context(), &b, parts, r.Metadata()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), golden) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), golden)
	}
}

func TestRefusedToWrite(t *testing.T) {
	one := checkpoint(t, "one")
	named := func(name string) []ckptfmt.Part {
		p := one[0]
		p.Name = name
		return []ckptfmt.Part{p}
	}
	for name, c := range map[string]struct {
		parts []ckptfmt.Part
		want  string
	}{
		"strings":  {checkpoint(t, "strings"), "cannot hold"},
		"types":    {checkpoint(t, "dtypes"), "cannot hold"},
		"slices":   {checkpoint(t, "partitioned"), "is a slice"},
		"twice":    {append(one, one...), "already"},
		"no UTF-8": {named("\xff"), "rename it"},
		"reserved": {named(metadataKey), "rename it"},
	} {
		if err := Write(t.Context(), &bytes.Buffer{}, c.parts, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, &bytes.Buffer{}, one, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func entry(dtype, shape, offsets string) string {
	return `{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}`
}

func TestDamaged(t *testing.T) {
	two := `{"a":` + entry("U8", "[2]", "[0,2]") + `}`
	const most = "[1152921504606846975]" // as many bytes as have a number of bits
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":          {nil, "offset 0: length of the header"},
		"only a length":    {file("", ""), "offset 8: header: unexpected end of JSON"},
		"long header":      {file(two, "ab")[:20], "53 bytes, the file has 20: it was cut off"},
		"longer by one":    {file(two, "")[:len(file(two, ""))-1], "offset 0: length of the header: 53 bytes, the file has 60: it was cut off"},
		"largest header":   {append(binary.LittleEndian.AppendUint64(nil, maxHeader), two...), "100000000 bytes, the file has 61: it was cut off"},
		"huge header":      {append([]byte{255, 255, 255, 255, 255, 255, 255, 255}, two...), "at most 100000000 are read"},
		"no JSON":          {file("{", ""), "unexpected end of JSON"},
		"array":            {file("[]", ""), "not a JSON object"},
		"two objects":      {file("{}{}", ""), "after top-level value"},
		"no UTF-8":         {file("{\"\xff\":1}", ""), "not UTF-8"},
		"twice":            {file(`{"a":`+entry("U8", "[0]", "[0,0]")+`,"a":`+entry("U8", "[0]", "[0,0]")+`}`, ""), `"a" occurs twice`},
		"metadata":         {file(`{"__metadata__":{"a":1}}`, ""), "cannot unmarshal"},
		"no object":        {file(`{"a":1}`, ""), "not a JSON object"},
		"many dimensions":  {file(`{"a":`+entry("U8", "["+strings.Repeat("1,", maxRank)+"1]", "[0,1]")+`}`, "a"), "shape has 255 elements, at most 254 are read"},
		"missing":          {file(`{"a":{"dtype":"U8","shape":[]}}`, ""), "missing"},
		"three offsets":    {file(`{"a":`+entry("U8", "[2]", "[0,1,2]")+`}`, "ab"), "missing"},
		"null":             {file(`{"a":`+entry("U8", "null", "[0,1]")+`}`, "a"), "missing"},
		"no text":          {file(`{"a":{"dtype":8,"shape":[2],"data_offsets":[0,2]}}`, "ab"), `tensor "a": json: cannot unmarshal number`},
		"no shape":         {file(`{"a":`+entry("U8", "2", "[0,2]")+`}`, "ab"), `tensor "a": json: cannot unmarshal number`},
		"no offsets":       {file(`{"a":`+entry("U8", "[2]", `{"x":0}`)+`}`, "ab"), `tensor "a": json: cannot unmarshal object`},
		"type":             {file(`{"a":`+entry("f3", "[2]", "[0,1]")+`}`, "a"), `"f3"`},
		"negative":         {file(`{"a":`+entry("U8", "[-1]", "[0,1]")+`}`, "a"), `"-1" is not a number`},
		"negative offset":  {file(`{"a":`+entry("U8", "[1]", "[-1,0]")+`}`, "a"), `"-1" is not a number`},
		"fraction":         {file(`{"a":`+entry("U8", "[1.5]", "[0,1]")+`}`, "a"), `"1.5" is not a number`},
		"overflow":         {file(`{"a":`+entry("U8", "[4294967296,4294967296]", "[0,0]")+`}`, ""), "than an int64 can count"},
		"overflow in size": {file(`{"a":`+entry("F64", "[4611686018427387904]", "[0,0]")+`}`, ""), "larger than any file"},
		"largest size":     {file(`{"a":`+entry("U8", most, "[0,1152921504606846975]")+`}`, ""), "offset 97: elements: the tensors take 1152921504606846975 bytes"},
		"size":             {file(`{"a":`+entry("U8", "[2]", "[0,1]")+`}`, "a"), "needs 2 bytes"},
		"size in bits":     {file(`{"a":`+entry("F4", "[3]", "[0,1]")+`}`, "a"), "needs 1.5 bytes"},
		"backwards":        {file(`{"a":`+entry("U8", "[2]", "[2,0]")+`}`, "ab"), "needs 2 bytes"},
		"backwards, Q9":    {file(`{"a":`+entry("Q9", "[2]", "[2,0]")+`}`, "ab"), "data_offsets are [2,0]"},
		"hole":             {file(`{"a":`+entry("U8", "[1]", "[1,2]")+`}`, "ab"), "offset 61: tensor \"a\": it begins at 1"},
		"overlap": {
			file(`{"a":`+entry("U8", "[2]", "[0,2]")+`,"b":`+entry("U8", "[2]", "[1,3]")+`}`, "abc"),
			`offset 115: tensor "b": it begins at 1, the tensor before it ends at 2`,
		},
		"beyond": {file(`{"a":`+entry("U8", "[2]", "[0,2]")+`}`, "a"), "elements: the tensors take 2 bytes, the file has 1 of them: it was cut off"},
		"more":   {file(two, "abc"), "offset 63: elements: the tensors take 2 bytes, 3 follow"},
	} {
		_, err := read(c.file)
		var damage *ckptfmt.CorruptError
		if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	whole := file(`{"a":`+entry("U8", "[2]", "[0,2]")+`}`, "ab")
	for i := range whole {
		if _, err := read(whole[:i]); err == nil {
			t.Errorf("cut at %d: no error", i)
		}
	}
}

// TestCutHidesNoOtherTensor has the tensors before the end of a file that was cut off, in any order of the header.
func TestCutHidesNoOtherTensor(t *testing.T) {
	whole := file(`{"c":`+entry("U8", "[2]", "[3,5]")+`,"a":`+entry("U8", "[2]", "[0,2]")+`,"b":`+entry("U8", "[1]", "[2,3]")+`}`, "abcde")
	for cut, want := range []string{"abcde", "ab c - ", "ab c - ", "ab - - "} {
		if cut == 0 {
			want = "ab c de "
		}
		r, err := read(whole[:len(whole)-cut])
		if err != nil {
			t.Fatal(cut, err)
		}
		got, verified := "", 0
		for i, p := range r.Parts() {
			tensor, err := p.Load()
			_, infoErr := r.Info(i)
			var damage *ckptfmt.CorruptError
			switch {
			case err == nil && infoErr == nil:
				got += string(tensor.Data) + " "
			case errors.As(err, &damage) && errors.As(infoErr, &damage) && damage.Offset == int64(len(whole)-cut):
				got += "- "
			default:
				t.Errorf("cut by %d: %s: %v, %v", cut, p.Name, err, infoErr)
			}
		}
		for _, err := range r.Verify(t.Context()) {
			if err == nil {
				verified++
			}
		}
		if got != want || verified != 3-strings.Count(want, "-") {
			t.Errorf("cut by %d: %q, want %q; %d are intact", cut, got, want, verified)
		}
	}
}

func TestBool(t *testing.T) {
	r, err := read(file(`{"x":`+entry("U8", "[3]", "[0,3]")+`,"a":`+entry("BOOL", "[2]", "[3,5]")+`}`, "abc\x02\x00"))
	if err != nil {
		t.Fatal(err)
	}
	var damage *ckptfmt.CorruptError
	if _, err := r.Parts()[1].Load(); !errors.As(err, &damage) || damage.Offset != r.start+3 || damage.Part != `tensor "a"` {
		t.Errorf("got %v", err)
	}
}

func TestOpenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.safetensors")
	if _, err := Open(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(name, file(`{"a":`+entry("I16", "[1]", "[0,2]")+`}`, "\x01\x02"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Parts()[0].Load()
	if err != nil || got.DType != tfpb.DataType_DT_INT16 || string(got.Data) != "\x01\x02" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Parts()[0].Load(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after it was closed: %v", err)
	}
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
}

// TestForeignTypes are read as bytes, and written again as they were: those that only
// torch has, and those of later versions of the format, of whatever size.
func TestForeignTypes(t *testing.T) {
	for dtype, foreign := range map[string]string{
		"F4": "F4", "F6_E2M3": "F6_E2M3", "F6_E3M2": "F6_E3M2", "F8_E8M0": "float8_e8m0fnu", "I4": "I4", "F8_E3M4": "F8_E3M4",
	} {
		size := map[string]string{"F4": "2", "F6_E2M3": "3", "F6_E3M2": "3", "I4": "2"}[dtype]
		size = cmp.Or(size, "4")
		const padding = "       "
		head := `{"b":` + entry("U8", "[1]", "[0,1]") + `,"a":` + entry(dtype, "[4]", "[1,5]") + `}`
		head = strings.Replace(head, "[1,5]", "[1,"+string('1'+size[0]-'0')+"]", 1)
		if dtype == "F8_E8M0" { // its place is before that of U8
			head = `{"a":` + entry(dtype, "[4]", "[0,4]") + `,"b":` + entry("U8", "[1]", "[4,5]") + `}`
		}
		b := file(head+padding[:(8-len(head)%8)%8], "12345"[:1+size[0]-'0'])
		r, err := read(b)
		if err != nil {
			t.Errorf("%s: %v", dtype, err)
			continue
		}
		for _, p := range r.Parts() {
			x, err := p.Load()
			if n, _ := p.Size(); err != nil || int(n) != len(x.Data) || p.Name == "a" && (p.TypeName() != foreign || len(x.Data) != int(size[0]-'0')) {
				t.Errorf("%s: %q of %s is %v, %v", dtype, p.Name, p.TypeName(), x, err)
			}
		}
		var again bytes.Buffer
		if err := Write(t.Context(), &again, r.Parts(), nil); err != nil || !bytes.Equal(again.Bytes(), b) {
			t.Errorf("%s: %v, written again it is %q, want %q", dtype, err, again.Bytes(), b)
		}
	}
	for _, dtype := range []string{"F4", "float32", "a b", "", "4F", strings.Repeat("F", 33)} {
		if _, err := read(file(`{"a":`+entry(dtype, "[3]", "[0,1]")+`}`, "1")); err == nil {
			t.Errorf("three elements of %q in a byte are accepted", dtype)
		}
	}
}

// TestStrangeMember is ignored, as the library does.
func TestStrangeMember(t *testing.T) {
	r, err := read(file(`{"a":{"dtype":"U8","x":{"y":[1]},"shape":[],"data_offsets":[0,1],"z":1}}`, "a"))
	if err != nil || r.Len() != 1 {
		t.Fatal(err)
	}
	p := r.Part(0)
	if got, err := p.Load(); err != nil || string(got.Data) != "a" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestForeignNames are none of TensorFlow's: a hash has the name, and its types are not
// packed.
func TestForeignNames(t *testing.T) {
	for _, d := range dtypes {
		if _, ok := dtype.Parse(d.foreign); ok {
			t.Errorf("%s is %q", d.name, d.foreign)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(file(`{"__metadata__":{"a":"b"},"a":`+entry("U8", "[2]", "[0,2]")+`}`, "ab"))
	f.Add(file(`{"a":`+entry("BF16", "[]", "[0,2]")+`,"b":`+entry("BOOL", "[1,1]", "[2,3]")+`}  `, "abc"))
	var b bytes.Buffer
	if err := Write(f.Context(), &b, checkpoint(f, "one"), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		defer membound.Check(t, len(b), 256)()
		r, err := read(b)
		var damage *ckptfmt.CorruptError
		if err != nil {
			if !errors.As(err, &damage) {
				t.Fatalf("an error of type %T: %v", err, err)
			}
			return
		}
		total := 0
		for _, p := range r.Parts() {
			x, err := p.Load()
			if err != nil {
				if !errors.As(err, &damage) && !errors.Is(err, ckptfmt.ErrType) {
					t.Fatalf("an error of type %T: %v", err, err)
				}
				return
			}
			total += len(x.Data)
		}
		if total > len(b) {
			t.Errorf("%d bytes of elements in a file of %d", total, len(b))
		}
		var again bytes.Buffer
		if err := Write(t.Context(), &again, r.Parts(), r.Metadata()); err == nil {
			if _, err := read(again.Bytes()); err != nil {
				t.Errorf("what was written cannot be read: %v", err)
			}
		}
	})
}

// FuzzScan compares the reader in one pass with encoding/json.
func FuzzScan(f *testing.F) {
	f.Add(`{"__metadata__":{"a":"b\\u00e9"},"a\\n":` + entry("U8", "[2]", "[0,2]") + `}`)
	f.Add(` { "a" : ` + entry("BF16", "[ ]", "[0, 2]") + ` , "b":` + entry("BOOL", "[1,01]", "[2,3]") + `}  `)
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // such headers are refused before
		}
		tensors, metadata, err := scanHeader([]byte(text), func(do func() error) error { return do() })
		if err != nil {
			return
		}
		want, wantMetadata, err := parseHeader([]byte(text))
		if err != nil {
			t.Fatalf("%q is read, and is not valid: %v", text, err)
		}
		if diff := gocmp.Diff(want, tensors, gocmp.AllowUnexported(tensor{}, elementType{})); diff != "" || !maps.Equal(metadata, wantMetadata) {
			t.Errorf("%q: %s", text, diff)
		}
	})
}

func TestHeadersOfTheLibraryAreReadInOnePass(t *testing.T) {
	var b bytes.Buffer
	if err := Write(t.Context(), &b, checkpoint(t, "one"), map[string]string{"format": "pt", "é\n": "\""}); err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b.Bytes())
	if _, _, err := scanHeader(b.Bytes()[lengthSize:lengthSize+n], func(do func() error) error { return do() }); err != nil {
		t.Error(err)
	}
}

// TestLargeHeaders are read by two goroutines, or by one where what looks like the beginning
// of an entry in the middle is a part of a name.
func TestLargeHeaders(t *testing.T) {
	header := func(name func(i int) string, entries int, more string) []byte {
		b := []byte(`{"__metadata__":{"a":"b"}`)
		for i := range entries {
			b = fmt.Appendf(b, `,%q:{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, name(i), i, i+1)
		}
		return append(append(b, more...), "}  "...)
	}
	plain := func(i int) string { return fmt.Sprint("layer.", i) }
	const entries = 2 * leastApart / 64
	whole := bytes.TrimSpace(header(plain, entries, ""))
	endInTheMiddle := bytes.Clone(whole)
	for i := entries; len(endInTheMiddle) < 2*len(whole)-1000; i++ {
		endInTheMiddle = fmt.Appendf(endInTheMiddle, `,"x.%d":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, i, i, i+1)
	}
	endInTheMiddle = append(endInTheMiddle, '}')
	endInTheMiddle = append(endInTheMiddle, bytes.Repeat([]byte(" "), 2*len(whole)-20-len(endInTheMiddle))...)
	for what, tc := range map[string]struct {
		text []byte
		ok   bool
	}{
		"plain":             {header(plain, entries, ""), true},
		"names like ends":   {header(func(i int) string { return fmt.Sprint(i, strings.Repeat("},", 40)) }, entries/2, ""), true},
		"a name twice":      {header(func(i int) string { return fmt.Sprint(i % (entries - 1)) }, entries, ""), false},
		"metadata twice":    {header(plain, entries, `,"__metadata__":{}`), false},
		"damage at the end": {header(plain, entries, `,"x":{"dtype":"U8"}`), false},
		"end in the middle": {endInTheMiddle, false},
		"no end":            {header(plain, entries, "")[:2*leastApart], false},
	} {
		if len(tc.text) < leastApart {
			t.Fatalf("%s: %d bytes are too few", what, len(tc.text))
		}
		tensors, metadata, err := scanHeader(tc.text, func(do func() error) error { return do() })
		if (err == nil) != tc.ok {
			t.Errorf("%s: the error is %v", what, err)
		}
		if err != nil {
			continue
		}
		want, wantMetadata, err := parseHeader(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(want, tensors, func(a, b tensor) bool {
			return a.name == b.name && a.of == b.of && a.begin == b.begin && a.end == b.end && slices.Equal(a.shape, b.shape)
		}) || !maps.Equal(metadata, wantMetadata) {
			t.Errorf("%s: other tensors or metadata than encoding/json reads", what)
		}
	}
}
