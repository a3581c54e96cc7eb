package pickled

import (
	"strings"
	"testing"

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
