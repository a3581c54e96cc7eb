package pickle

import (
	"strings"
	"testing"
)

// TestMemo fetches of some thousand values the first, one in the middle, the last, one
// that was replaced and one that is out of order.
func TestMemo(t *testing.T) {
	var b strings.Builder
	b.WriteString("\x80\x04(")
	for range 2 * earlyPlaces {
		b.WriteString("\x8c\x01a\x94")
	}
	b.WriteString("\x8c\x01br\x07\x15\x00\x00\x8c\x01cr\x00\x00\x01\x00h\x00j\x06\x15\x00\x00j\x07\x15\x00\x00j\xff\x1f\x00\x00j\x00\x00\x01\x00t.")
	v, _, err := Load(b.String(), Rules{Allowed: func(string) bool { return false }})
	got, _ := v.(Tuple)
	if err != nil || len(got) < 5 {
		t.Fatalf("%d items, %v", len(got), err)
	}
	for i, want := range []string{"a", "a", "b", "a", "c"} {
		if v := got[len(got)-5+i]; v != any(want) {
			t.Errorf("fetch %d is %v, want %s", i, v, want)
		}
	}
	for _, missing := range []string{"h\x00", "j\xff\xff\xff\xff"} {
		if _, _, err := Load("\x80\x02"+missing+".", Rules{}); err == nil || !strings.Contains(err.Error(), "the memo has nothing at") {
			t.Errorf("%q: %v", missing, err)
		}
	}
}

// TestMemoOfDroppedValues reads a pickle again that fetches what the short way has not
// kept, early or late.
func TestMemoOfDroppedValues(t *testing.T) {
	for _, n := range []int{1, earlyPlaces} {
		calls := strings.Repeat("cm\nf\n((K\x01K\x02t\x94t\x94R\x94", n)
		short := 0
		rules := Rules{
			Allowed: func(string) bool { return true },
			Call:    func(_ string, args Tuple) (any, error) { return args[0], nil },
			Short: func(_ Global, c *Cursor) any {
				list := c.Ints(nil)
				short++
				return Tuple{list[0], list[1]}
			},
		}
		last := 3*n - 3 // where the arguments of the last call are
		v, _, err := Load("\x80\x04("+calls+"j"+string([]byte{byte(last), byte(last >> 8), 0, 0})+"t.", rules)
		got, _ := v.(Tuple)
		if err != nil || len(got) != n+1 || len(got[n].(Tuple)) != 2 || got[n].(Tuple)[1] != any(int64(2)) {
			t.Fatalf("%d calls: %d items, %v", n, len(got), err)
		}
		if short != n {
			t.Errorf("%d of %d calls went the short way first", short, n)
		}
	}
}
