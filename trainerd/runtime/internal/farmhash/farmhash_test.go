package farmhash

import (
	"strings"
	"testing"
)

// The fingerprints are TensorFlow's, of one string per code path.
func TestFingerprint64(t *testing.T) {
	cases := []struct {
		s    string
		want uint64
	}{
		{"", 0x9ae16a3b2f90404f},
		{"a", 0xb3454265b6df75e3},
		{"hello", 0xb48be5a931380ce8},
		{"0123456789", 0xad052244b781c4eb},
		{strings.Repeat("x", 20), 0x7241ce1f8ef74dc4},
		{strings.Repeat("ab", 25), 0x13743713644c10b3},
		{strings.Repeat("z", 64), 0x41756d0f401a218},
		{strings.Repeat("q", 65), 0x6ac1c33e9f76db29},
		{strings.Repeat("0123456789", 20), 0x861a2ca290dc8395},
	}
	for _, c := range cases {
		if got := Fingerprint64([]byte(c.s)); got != c.want {
			t.Errorf("%q (%d bytes): %#x, want %#x", c.s, len(c.s), got, c.want)
		}
	}
}
