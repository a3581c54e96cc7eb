package pickle_test

import (
	"encoding/binary"
	"fmt"
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
		"a tuple of very many":      {"(" + strings.Repeat("K\x01", long/8) + "t", "times its size"},
		"a tuple with a long text":  {text(letters) + "\x85", ""},
		"a text that is still read": {text(letters[:1024]), ""},
	} {
		for n, want := range map[int]string{1: "", 20_000: c.err} {
			b := "\x80\x03" + c.key + "q\x010}" + strings.Repeat("h\x01Ns", n) + "."
			_, end, err := pickle.Load(b, none)
			if (err != nil) != (want != "") || err != nil && (b[end] != 's' || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %d times: %v at %d, want %q", name, n, err, end, want)
			}
		}
	}
}

// TestLongValues has a long text for the value of many keys, which nothing looks at.
func TestLongValues(t *testing.T) {
	v, _, err := pickle.Load("\x80\x03"+text(strings.Repeat("a", 1<<20))+"q\x010}"+strings.Repeat("K\x01h\x01s", 4096)+".", none)
	if d, ok := v.(*pickle.Dict); err != nil || !ok || len(d.Keys) != 1 {
		t.Errorf("got %v", err)
	}
}

// TestKeysOfRows has many keys in one row.
func TestKeysOfRows(t *testing.T) {
	for name, c := range map[string]struct {
		key     string
		refused bool
	}{
		"short": {"M\x01\x00", false},
		"long":  {text(strings.Repeat("a", 1<<16)), true},
	} {
		row := "(" + strings.Repeat("h\x01N", 1000) + "u"
		_, _, err := pickle.Load("\x80\x03"+c.key+"q\x010}"+row+".", none)
		if (err != nil) != c.refused {
			t.Errorf("a row of %s keys: %v", name, err)
		}
	}
	row := "(" + strings.Repeat("M\x01\x00N", 1000) + "u"
	if _, _, err := pickle.Load("\x80\x03}"+strings.Repeat(row, 600)+".", none); err != nil {
		t.Errorf("a dict of 600,000 keys: %v", err)
	}
}

// TestSharedArguments calls a function very often with arguments that take few bytes of the pickle: what
// is in them counts, as deep as a call may copy it.
func TestSharedArguments(t *testing.T) {
	rules := pickle.Rules{
		Allowed: func(string) bool { return true },
		Call:    func(string, pickle.Tuple) (any, error) { return nil, nil },
	}
	const size, calls = 16 << 10, 4096
	letters := text(strings.Repeat("a", size))
	for name, c := range map[string]struct {
		args    string
		refused bool
	}{
		"few":                     {"K\x01" + text("a") + "]\x87", false},
		"a text":                  {letters + "\x85", true},
		"bytes":                   {"B" + letters[1:] + "\x85", true},
		"themselves":              {"(" + strings.Repeat("N", size/8) + "t", true},
		"a tuple":                 {"(" + strings.Repeat("N", size/8) + "t\x85", true},
		"a list":                  {"](" + strings.Repeat("N", size/8) + "e\x85", true},
		"a text in a tuple":       {letters + "\x85\x85", true},
		"a text in a list":        {"]" + letters + "a\x85", true},
		"a text after a tuple":    {"N\x85" + letters + "\x86", true},
		"a text in pairs":         {"](" + letters + "N\x86e\x85", true},
		"a text in their objects": {"](" + letters + "\x85N\x86e\x85", false},
	} {
		b := "\x80\x03" + c.args + "q\x010cm\nf\nq\x020(" + strings.Repeat("h\x02h\x01R", calls) + "t."
		_, end, err := pickle.Load(b, rules)
		if (err != nil) != c.refused || err != nil && (b[end] != 'R' || !strings.Contains(err.Error(), "times its size")) {
			t.Errorf("%s: %v at %d", name, err, end)
		}
	}
}

// TestSharedArgument has one call, with a list of the same pair very often.
func TestSharedArgument(t *testing.T) {
	rules := pickle.Rules{
		Allowed: func(string) bool { return true },
		Call:    func(string, pickle.Tuple) (any, error) { return nil, nil },
	}
	pair := text(strings.Repeat("a", 16<<10)) + "\x85q\x010"
	if _, _, err := pickle.Load("\x80\x03"+pair+"cm\nf\n]("+strings.Repeat("h\x01", 4096)+"e\x85R.", rules); err == nil {
		t.Error("it is read")
	}
}

// TestKeysTakeMemory has dicts with very many keys: a key takes little, but a long one is compared each time.
func TestKeysTakeMemory(t *testing.T) {
	begin := "\x80\x03" + text(strings.Repeat("a", 16<<10)) + "q\x010}("
	for name, c := range map[string]struct {
		items   string
		refused bool
	}{
		"short":           {strings.Repeat(strings.Repeat("K\x01N", 100_000)+"u(", 5), false},
		"long":            {strings.Repeat("h\x01N", 512), false},
		"long, and often": {strings.Repeat("h\x01N", 4096), true},
	} {
		if _, _, err := pickle.Load(begin+c.items+"u.", none); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTuplesAsKeys has each kind of a tuple twice in a dict: as a value of Python that is equal, or
// as one that nothing is known to be equal to.
func TestTuplesAsKeys(t *testing.T) {
	const most = 1024 - 16
	for name, c := range map[string]struct {
		key  string
		keys int
	}{
		"all that are compared": {"(K\x01\x88NG\x3f\xf8\x00\x00\x00\x00\x00\x00" + text("a") + "t", 1},
		"many":                  {"(" + strings.Repeat("K\x01", 64) + "t", 1},
		"very many":             {"(" + strings.Repeat("K\x01", 65) + "t", 2},
		"a text":                {text(strings.Repeat("a", most)) + "\x85", 1},
		"a long text":           {text(strings.Repeat("a", most+1)) + "\x85", 2},
		"another tuple":         {"K\x01\x85\x85", 2},
		"a list":                {"]\x85", 2},
	} {
		v, _, err := pickle.Load("\x80\x02}("+c.key+"K\x01"+c.key+"K\x02u.", none)
		d, ok := v.(*pickle.Dict)
		if err != nil || !ok || len(d.Keys) != c.keys || d.Values[c.keys-1] != any(int64(2)) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

// TestItemsOfObjects are those that objects have whose classes are derived from dict or list.
func TestItemsOfObjects(t *testing.T) {
	rules := pickle.Rules{
		Allowed: func(string) bool { return true },
		New: func(class string, args pickle.Tuple) (any, error) {
			return &pickle.Object{Class: pickle.Global(class), Args: args}, nil
		},
	}
	const made = "cm\nC\n)\x81"
	for text, want := range map[string]string{
		made + ".":                   "<nil>",
		made + "K\x01K\x02s.":        "map[1:2]",
		made + "(K\x01K\x02K\x03Nu.": "map[1:2 3:<nil>]",
		made + "K\x01aK\x02a.":       "[1 2]",
		made + "(K\x01K\x02e}b.":     "[1 2]",
		made + "K\x01K\x02sK\x01a.":  "error",
		made + "K\x01aK\x01K\x02s.":  "error",
		made + "(K\x01u.":            "error",
		"\x80\x02N" + "K\x01a.":      "error",
		made + "(K\x01K\x02\x90":     "error",
	} {
		v, _, err := pickle.Load("\x80\x02"+text, rules)
		got := "error"
		if o, ok := v.(*pickle.Object); ok && err == nil {
			switch items := o.Items.(type) {
			case *pickle.Dict:
				all := map[any]any{}
				for i, key := range items.Keys {
					all[key] = items.Values[i]
				}
				got = fmt.Sprint(all)
			case *pickle.List:
				got = fmt.Sprint(items.Items)
			default:
				got = fmt.Sprint(items)
			}
		}
		if got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}
