package safetensors

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// part is a tensor of bytes.
func part(name string, shape []int64, data string) ckptfmt.Part {
	return ckptfmt.WholePart(name, tfpb.DataType_DT_UINT8, shape, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(data)), nil })
}

// TestBytes are those that the library writes, also of a name with blanks and control
// characters and a shape of several digits. The list itself stays in its order.
func TestBytes(t *testing.T) {
	list := []ckptfmt.Part{part("b", []int64{10}, "0123456789"), part("a \x0b\x1f\x00", []int64{1, 1}, "a")}
	var b bytes.Buffer
	if err := Write(t.Context(), &b, list, nil); err != nil {
		t.Fatal(err)
	}
	head := `{"a \u000b\u001f\u0000":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[10],"data_offsets":[1,11]}}`
	if want := file(head+strings.Repeat(" ", (8-len(head)%8)%8), "a0123456789"); !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want)
	}
	if list[0].Name != "b" {
		t.Error("the list was sorted")
	}
}

// limited is a disk that is full after so many bytes.
type limited struct{ left int }

var errFull = errors.New("the disk is full")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, errFull
	}
	l.left -= len(b)
	return len(b), nil
}

func TestDiskFull(t *testing.T) {
	list := []ckptfmt.Part{part("a", []int64{2}, "ab"), part("b", []int64{1}, "c")}
	var whole bytes.Buffer
	if err := Write(t.Context(), &whole, list, nil); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if err := Write(t.Context(), &limited{n}, list, nil); !errors.Is(err, errFull) {
			t.Errorf("full after %d of %d bytes: %v", n, whole.Len(), err)
		}
	}
	if err := Write(t.Context(), &limited{whole.Len()}, list, nil); err != nil {
		t.Error(err)
	}
}

// TestBadParts cannot be written, and what is wrong with them is said.
func TestBadParts(t *testing.T) {
	errSource := errors.New("the source is damaged")
	unreadable := part("a", []int64{2}, "")
	unreadable.Open = func() (io.ReadCloser, error) { return nil, errSource }
	damaged := part("a", []int64{2}, "")
	damaged.Err = errSource
	failing := part("a", []int64{2}, "")
	failing.Open = func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("a"), errReader{errSource})), nil
	}
	other := part("a", []int64{2}, "ab")
	other.DType, other.Foreign, other.Bytes = tfpb.DataType_DT_INVALID, "float8_e9m9", 2
	huge := func(n int64) ckptfmt.Part { return part("b", []int64{n}, "") }
	half := part("a", []int64{1 << 62}, "")
	half.Open = unreadable.Open
	for name, c := range map[string]struct {
		list []ckptfmt.Part
		want string
	}{
		"too short":          {[]ckptfmt.Part{part("a", []int64{2}, "a")}, `tensor "a" has 1 bytes, its shape [2] needs 2`},
		"too long":           {[]ckptfmt.Part{part("a", []int64{2}, "abc")}, `tensor "a" has 3 bytes, its shape [2] needs 2`},
		"cannot be opened":   {[]ckptfmt.Part{unreadable}, errSource.Error()},
		"cannot be read":     {[]ckptfmt.Part{failing}, errSource.Error()},
		"known to be bad":    {[]ckptfmt.Part{damaged}, errSource.Error()},
		"a type of no name":  {[]ckptfmt.Part{other}, `cannot hold "a" of float8_e9m9`},
		"giant shape":        {[]ckptfmt.Part{part("a", []int64{1 << 32, 1 << 32}, "")}, "than an int64 can count"},
		"too large together": {[]ckptfmt.Part{half, huge(1 << 62)}, `tensor "b": the tensors are larger than any file`},
		"just not":           {[]ckptfmt.Part{half, huge(1<<62 - 1)}, errSource.Error()},
	} {
		if err := Write(t.Context(), io.Discard, c.list, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestCheckOfDamage(t *testing.T) {
	p := part("a", nil, "a")
	if p.Err = errors.New("the source is damaged"); Check(p) != p.Err {
		t.Errorf("got %v", Check(p))
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestShards(t *testing.T) {
	list := []ckptfmt.Part{
		part("d", []int64{3}, ""), part("c", []int64{1}, ""), part("e", []int64{0}, ""), part("b", []int64{9}, ""), part("a", []int64{2}, ""),
		part("f", []int64{2}, ""),
	}
	shards, err := SplitShards(list, 4)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	files := []string{"1", "2", "3"}
	for _, s := range shards {
		var names []string
		for _, p := range s {
			names = append(names, p.Name)
		}
		got = append(got, names)
	}
	if want := [][]string{{"d", "c", "e"}, {"b"}, {"a", "f"}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("files have %q, want %q", got, want)
	}
	index, err := Index(shards, files)
	want := `{
  "metadata": {
    "total_size": 17
  },
  "weight_map": {
    "a": "3",
    "b": "2",
    "c": "1",
    "d": "1",
    "e": "1",
    "f": "3"
  }
}
`
	if err != nil || string(index) != want {
		t.Errorf("got %s, %v", index, err)
	}
	if shards, err := SplitShards(nil, 4); len(shards) > 0 || err != nil {
		t.Errorf("of nothing: %v, %v", shards, err)
	}
	if first, err := SplitShards([]ckptfmt.Part{part("e", []int64{0}, "")}, 4); len(first) != 1 || err != nil {
		t.Errorf("of no bytes: %v, %v", first, err)
	}
}

func TestBadShards(t *testing.T) {
	giant := []ckptfmt.Part{part("a", []int64{math.MaxInt64, 2}, "")}
	if _, err := SplitShards(giant, 4); err == nil {
		t.Error("a giant shape is split")
	}
	if _, err := Index([][]ckptfmt.Part{giant}, []string{"1"}); err == nil {
		t.Error("a giant shape is counted")
	}
	twice := [][]ckptfmt.Part{{part("a", []int64{1}, "")}, {part("a", []int64{1}, "")}}
	if _, err := Index(twice, []string{"1", "2"}); !errors.Is(err, ckptfmt.ErrExists) {
		t.Errorf("a name twice: %v", err)
	}
}
