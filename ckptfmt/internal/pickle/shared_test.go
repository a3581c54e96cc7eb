package pickle_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// TestLongKeys has keys that take long to be looked up, each time in a few bytes of the pickle.
// Those that a program has once are read.
func TestLongKeys(t *testing.T) {
	const long = 1 << 20
	letters := strings.Repeat("a", long)
	blob := "B" + text(letters)[1:]
	for name, c := range map[string]struct{ key, err string }{
		"a text":                    {text(letters), "times its size"},
		"bytes":                     {blob, "times its size"},
		"a tuple of many":           {"(" + strings.Repeat("K\x01", 64) + "t", ""},
		"a tuple of very many":      {"(" + strings.Repeat("K\x01", 65) + "t", "for a key"},
		"a tuple with a text":       {text(letters[:1008]) + "\x85", ""},
		"a tuple with a long text":  {text(letters[:1009]) + "\x85", "for a key"},
		"a tuple with another one":  {"K\x01\x85\x85", "for a key"},
		"a tuple of other pickles":  {"(K\x01\x88NG\x3f\xf8\x00\x00\x00\x00\x00\x00" + text("a") + "t", ""},
		"a text that is still read": {text(letters[:1024]), ""},
	} {
		for n, want := range map[int]string{1: c.err, 4096: c.err} {
			if n == 1 && want == "times its size" {
				want = ""
			}
			_, _, err := pickle.Load("\x80\x03"+c.key+"q\x010}"+strings.Repeat("h\x01Ns", n)+".", none)
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %d times: %v, want %q", name, n, err, want)
			}
		}
	}
}
