package pickle_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	"github.com/trainerd/trainerd/internal/membound"
)

// none allows nothing.
var none = pickle.Rules{Allowed: func(string) bool { return false }}

func TestLimitOfValues(t *testing.T) {
	for limit, fails := range map[int]bool{0: false, 4: false, 3: true} {
		rules := none
		rules.MaxValues = limit
		_, _, err := pickle.Load("\x80\x02K\x01K\x02K\x03\x87.", rules)
		if failed := err != nil && strings.Contains(err.Error(), "more than 3 values"); failed != fails {
			t.Errorf("at most %d values: %v", limit, err)
		}
	}
}

// TestValues has numbers and texts of each size, the memo, and containers in each other.
func TestValues(t *testing.T) {
	const text = "\x80\x04(X\x01\x00\x00\x00aq\x00J\xff\xff\xff\xffK\x02M\x00\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00h\x00\x8c\x01b\x94h\x01t."
	v, end, err := pickle.Load(text+"rest", none)
	if err != nil || end != len(text) {
		t.Fatalf("end %d of %d: %v", end, len(text), err)
	}
	want := pickle.Tuple{"a", int64(-1), int64(2), int64(256), 1.5, "a", "b", "b"}
	got, ok := v.(pickle.Tuple)
	if !ok || len(got) != len(want) {
		t.Fatalf("got %#v", v)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("element %d is %#v, want %#v", i, got[i], want[i])
		}
	}
}

// TestTuplesAreApart has many small tuples, whose memory is next to each other.
func TestTuplesAreApart(t *testing.T) {
	v, _, err := pickle.Load("\x80\x02("+strings.Repeat("K\x01K\x02\x86", 1000)+"t.", none)
	if err != nil {
		t.Fatal(err)
	}
	for _, inner := range v.(pickle.Tuple) {
		pair := append(inner.(pickle.Tuple), "more") // must not be written into the next one
		if len(pair) != 3 || pair[0] != any(int64(1)) || pair[1] != any(int64(2)) {
			t.Fatalf("got %v", pair)
		}
	}
}

func TestDictKeepsTheLastValueOfAKey(t *testing.T) {
	v, _, err := pickle.Load("\x80\x02}(X\x01\x00\x00\x00aK\x01K\x07K\x02X\x01\x00\x00\x00aK\x03K\x07K\x04u.", none)
	d, ok := v.(*pickle.Dict)
	if err != nil || !ok || len(d.Keys) != 2 || d.Get("a") != any(int64(3)) || d.Get(int64(7)) != any(int64(4)) || d.Get("b") != nil {
		t.Fatalf("got %#v, %v", v, err)
	}
}

func TestCutPickle(t *testing.T) {
	const text = "\x80\x02(X\x03\x00\x00\x00abcK\x01t."
	for n := range text {
		if _, _, err := pickle.Load(text[:n], none); !errors.Is(err, pickle.ErrShort) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}

// TestMemoryIsBounded has pickles whose every byte asks for a value that nothing
// holds, or that is held.
func TestMemoryIsBounded(t *testing.T) {
	const size = 1 << 19
	for name, text := range map[string]string{
		"marks": strings.Repeat("(", size),
		"dicts": strings.Repeat("}", size),
		"lists": strings.Repeat("]", size),
		"none":  strings.Repeat("N", size),
		"held":  strings.Repeat("](]]]]]]]]]]]]]]]e", size/9),
		"memo":  "N" + strings.Repeat("r\xff\xff\xff\xff", size/5),
	} {
		t.Run(name, func(t *testing.T) {
			defer membound.Check(t, len(text), 72)()
			rules := none
			rules.MaxValues = 1 << 30
			_, _, err := pickle.Load("\x80\x02"+text+".", rules)
			if err == nil && name != "memo" {
				t.Error("it is read")
			}
		})
	}
}

// TestListOfNumbers is one that a program saves: no limit is meant for it.
func TestListOfNumbers(t *testing.T) {
	const batches = 500
	text := "\x80\x02]" + strings.Repeat("("+strings.Repeat("K\x01", 1000)+"e", batches) + "."
	v, _, err := pickle.Load(text, none)
	if l, ok := v.(*pickle.List); err != nil || !ok || len(l.Items) != 1000*batches {
		t.Fatal(err)
	}
}

// TestLargeDict sets keys in no order, some of them twice, in batches as Python writes
// them: each keeps its first place and its last value.
func TestLargeDict(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, twice := range []int{0, 1, 100} {
		b := []byte("\x80\x02}")
		var keys []string
		want := map[string]int64{}
		set := func(key string, value byte) {
			b = append(binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(key))), key...)
			b = append(b, 'K', value)
			if _, have := want[key]; !have {
				keys = append(keys, key)
			}
			want[key] = int64(value)
		}
		for range 5 {
			b = append(b, '(')
			for range 1000 {
				set(strconv.Itoa(random.Int()), byte(random.IntN(256)))
			}
			b = append(b, 'u')
		}
		b = append(b, '(')
		for range twice {
			set(keys[random.IntN(len(keys))], 7)
		}
		b = append(b, 'u', '.')
		v, _, err := pickle.Load(string(b), none)
		if err != nil {
			t.Fatal(err)
		}
		d := v.(*pickle.Dict)
		if len(d.Keys) != len(keys) {
			t.Fatalf("%d twice: %d keys, want %d", twice, len(d.Keys), len(keys))
		}
		for i, key := range keys {
			if d.Keys[i] != any(key) || d.Values[i] != any(want[key]) || d.Get(key) != any(want[key]) {
				t.Fatalf("%d twice: key %d is %v: %v, want %s: %d", twice, i, d.Keys[i], d.Values[i], key, want[key])
			}
		}
	}
}
