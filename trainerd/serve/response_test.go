package serve

import (
	"math"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// TestWholeNumbers answers with integers whose digits a float would lose, or show as a
// fraction with an exponent, which a client that wants an integer refuses.
func TestWholeNumbers(t *testing.T) {
	for want, x := range map[string]*ckptfmt.Tensor{
		"1234567":              ckptfmt.Scalar[int32](1234567),
		"9223372036854775807":  ckptfmt.Scalar[int64](math.MaxInt64),
		"18446744073709551615": ckptfmt.Scalar[uint64](math.MaxUint64),
	} {
		w, err := newTensorWriter("id", x)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(w.all(nil)); got != want {
			t.Errorf("%v: %s, want %s", x.DType, got, want)
		}
	}
}

// TestByteOutOfRange gives a byte a number that it cannot hold.
func TestByteOutOfRange(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"255", ""}, {"256", "256 is outside of 0 to 255"}, {"-1", "-1 is outside of 0 to 255"},
		{"1e3", "1e3 is not an integer"}, {"99999999999999999999", "99999999999999999999 is outside of 0 to 255"},
	} {
		var v any
		if err := decode([]byte(c.given), &v); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := intOf(v, 0, math.MaxUint8); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.given, got, c.want)
		}
	}
}
