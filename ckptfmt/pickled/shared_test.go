package pickled

import (
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	"github.com/trainerd/trainerd/internal/membound"
)

// TestSharedValues has pickles whose few bytes use a value very often. Each ends soon, with an error
// or with what a reader can hold.
func TestSharedValues(t *testing.T) {
	doubled := func(value string) string { return value + strings.Repeat("q\x01h\x01\x86", 60) } // 2^60 times
	array := func(shape string) string {
		return made("numpy.core.multiarray._reconstruct", tuple(number(1), shape, typ("f8", "<"), "\x89", data("x")), "N")
	}
	ones := tuple(strings.Repeat("K\x01", 16_384)) + "q\x010"
	for name, c := range map[string]struct {
		value string
		err   error
	}{
		"a shape of tuples":    {array(doubled("K\x01")), nil},
		"a shape of one tuple": {array(tuple(doubled("K\x01"))), nil},
		"a type of tuples":     {made("numpy.core.multiarray.scalar", "", doubled("K\x01"), data("x")), nil},
		"shapes of many":       {ones + list(strings.Repeat(array("h\x01"), 20_000)), nil},
		"tensors":              {doubled(made("torch._utils._rebuild_tensor_v2", "")), errTooMuch},
		"long names":           {"](" + strings.Repeat("N", 1000) + "eq\x010" + list(strings.Repeat(dict(text(strings.Repeat("a", 1000))+"h\x01"), 500)), errTooMuch},
		"digits":               {"\x8b\x00\x10\x00\x00" + strings.Repeat("\x7f", 4096) + "q\x010" + list(strings.Repeat("h\x01", 100)), errTooMuch},
	} {
		t.Run(name, func(t *testing.T) {
			defer membound.Check(t, 1<<20, 300)()
			if _, err := Leaves([]byte("\x80\x02" + c.value + ".")); err != c.err {
				t.Errorf("got %v, want %v", err, c.err)
			}
		})
	}
}

// TestPrinted has what a shape is, and what takes its place in a pickle that nothing has made.
func TestPrinted(t *testing.T) {
	many := make(pickle.Tuple, 64)
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"a shape":                 {pickle.Tuple{int64(2), int64(3)}, "[2 3]"},
		"of no dimension":         {pickle.Tuple{}, "[]"},
		"of as many as NumPy has": {many, "[<nil>" + strings.Repeat(" <nil>", 63) + "]"},
		"of one more":             {append(many, nil), "pickle.Tuple"},
		"others in a tuple": {
			pickle.Tuple{pickle.Tuple{}, &pickle.List{}, &pickle.Dict{}, &pickle.Object{}}, "[pickle.Tuple *pickle.List *pickle.Dict *pickle.Object]",
		},
		"a list": {&pickle.List{Items: []any{int64(1)}}, "*pickle.List"},
	} {
		if got := printed(c.v); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestItems has an object of a class that is derived from dict, whose items and attributes differ.
func TestItems(t *testing.T) {
	class := "cm\nConfig\n)\x81"
	got, err := Leaves([]byte("\x80\x02" + class + text("lr") + number(1) + "s" + dict(text("frozen")+number(2)) + "b."))
	if err != nil || len(got) != 3 || got["Config/lr"] != 1.0 || got["Config/frozen"] != 2.0 {
		t.Errorf("got %v, %v", got, err)
	}
}
