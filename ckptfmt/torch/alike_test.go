package torch

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// like returns a call as torch writes a hundred thousand of them: the tensor has a name, the
// key of its storage, a shape, and its values begin at a place in the memo.
func like(place int, name, key, shape string) string {
	text := func(s string) string { return "X" + string([]byte{byte(len(s)), 0, 0, 0}) + s }
	note := func() string {
		b := binary.LittleEndian.AppendUint32([]byte{'r'}, uint32(place))
		place++
		return string(b)
	}
	return text(name) + note() + "h\x02((h\x03h\x04" + text(key) + note() + "h\x06M\x04\x01t" + note() + "QK\x00" + shape + "\x85" + note() +
		"K\x01\x85" + note() + "\x89h\x0a)R" + note() + "t" + note() + "R" + note()
}

// placesOfCall is how many places a call fills, calls are more than fill the first places.
const (
	placesOfCall = 8
	calls        = 560
)

// likes returns a state dict of n such calls; change changes the text of call i.
func likes(n int, change func(i int, call string) string) string {
	var b strings.Builder
	b.WriteString("\x80\x02}q\x00(" + firstCall)
	for i := range n {
		call := like(14+placesOfCall*i, fmt.Sprint("name", i), fmt.Sprint(i), "K"+string([]byte{byte(1 + i%3)}))
		b.WriteString(change(i, call))
	}
	return b.String() + "u."
}

// TestAlike reads calls that are like earlier ones, and some that are nearly.
func TestAlike(t *testing.T) {
	replace := func(at int, from, to string) func(int, string) string {
		return func(i int, call string) string {
			if i != at {
				return call
			}
			if !strings.Contains(call, from) {
				t.Fatalf("%q has no %q", call, from)
			}
			return strings.Replace(call, from, to, 1)
		}
	}
	for name, change := range map[string]func(int, string) string{
		"as torch writes them":     func(_ int, call string) string { return call },
		"another storage":          replace(540, "M\x04\x01", "M\x05\x01"),
		"a storage too small":      replace(540, "M\x04\x01", "M\x00\x00"),
		"another stride":           replace(540, "K\x01\x85", "K\x02\x85"),
		"with gradient":            replace(540, "\x89", "\x88"),
		"another call":             replace(540, "h\x02((", "h\x0a(("),
		"a place of another value": replace(540, "tr", "tr\x00\x00\x00\x00r"),
		"a place is left out":      replace(540, "Rr", "Rr\x00\x01\x00\x00r"),
		"a key that is no text":    replace(540, "\x00540", "\x00\xff40"),
		"a key fetched":            replace(540, "X\x03\x00\x00\x00540", "h\x05"),
		"keys fetched":             keyFetched,
		"places that are counted":  counted,
		"a value into place 4": func(i int, call string) string {
			if i != 540 {
				return call
			}
			at := strings.Index(call, "tr") + len("tr")
			return call[:at] + string(binary.LittleEndian.AppendUint32(nil, 4)) + call[at+4:]
		},
		"then a value after all":  func(i int, call string) string { return more(replaced(i, call, "X\x01\x00\x00\x00z", 4400), i) },
		"an early text replaced":  func(i int, call string) string { return replaced(i, call, "X\x04\x00\x00\x00cuda", 6) },
		"the storage replaced":    func(i int, call string) string { return replaced(i, call, "ctorch\nHalfStorage\n", 4) },
		"a value out of order":    func(i int, call string) string { return replaced(i, call, "X\x01\x00\x00\x00z", 6000) },
		"a shape that is fetched": func(i int, call string) string { return fetching(i, call, 14+placesOfCall*530+3) },
		"a name that is fetched":  func(i int, call string) string { return fetching(i, call, 14+placesOfCall*538) },
		"a tensor fetched":        func(i int, call string) string { return fetching(i, call, 14+placesOfCall*538+7) },
		"an early name fetched":   func(i int, call string) string { return fetching(i, call, 14+placesOfCall*500) },
		"a name that is replaced": func(i int, call string) string { return replaced(i, call, "X\x01\x00\x00\x00z", 14+placesOfCall*538) },
		"a name of other bytes":   replace(540, "name540", "na\xffe540"),
		"a name that is cut off":  replace(540, "X\x07\x00\x00\x00name540", "X\x07\x00\x00\x7fname540"),
		"nothing is noted":        func(i int, call string) string { return unnoted(i, call, 540, calls) },
		"from some item on":       func(i int, call string) string { return unnoted(i, call, 0, 540) },
		"another place of a name": replace(540, "name540r", "name540r\x00\x00\x00\x00r"),
	} {
		short, long, _ := loadBoth(likes(calls, change))
		if len(long) > 1<<16 {
			t.Fatal("the description is cut off")
		}
		if short != long {
			t.Errorf("%s: got a text of %d bytes, want one of %d: %s", name, len(short), len(long), firstDifference(short, long))
		}
	}
}

// keyFetched fetches the keys of the last calls. Another value has the place that they would have.
func keyFetched(i int, call string) string {
	if i < 540 {
		return call
	}
	put := "r" + string(binary.LittleEndian.AppendUint32(nil, uint32(14+placesOfCall*i+1)))
	call = strings.Replace(call, "X\x03\x00\x00\x00"+fmt.Sprint(i)+put, "h\x01", 1)
	return strings.Replace(call, "h\x02((", "\x89"+put+"0h\x02((", 1)
}

// counted is a call whose values have the next places, until the value at one is fetched.
func counted(i int, call string) string {
	place := 14 + placesOfCall*i
	for n := range placesOfCall {
		call = strings.Replace(call, "r"+string(binary.LittleEndian.AppendUint32(nil, uint32(place+n))), "\x94", 1)
	}
	return fetching(i, call, 14+placesOfCall*535+7)
}

// unnoted is a call none of whose values is noted: but for those of items begin to end, whose
// places come first.
func unnoted(i int, call string, begin, end int) string {
	place := 14 + placesOfCall*i
	for n := range placesOfCall {
		put := "r"
		if begin <= i && i < end {
			put += string(binary.LittleEndian.AppendUint32(nil, uint32(place+n-placesOfCall*begin)))
		}
		call = strings.Replace(call, "r"+string(binary.LittleEndian.AppendUint32(nil, uint32(place+n))), strings.TrimSuffix(put, "r"), 1)
	}
	return call
}

// more is the last call, after which there is one more value, which is fetched.
func more(call string, i int) string {
	if i != calls-1 {
		return call
	}
	place := uint32(14 + placesOfCall*calls)
	return call + "X\x01\x00\x00\x00y\x94K\x01X\x01\x00\x00\x00xj" + string(binary.LittleEndian.AppendUint32(nil, place))
}

// replaced puts another value into a place of the memo before call 540.
func replaced(i int, call, value string, place uint32) string {
	if i != 540 {
		return call
	}
	put := value + "r" + string(binary.LittleEndian.AppendUint32(nil, place))
	return put + "0" + call
}

// fetching has a place of the memo fetched before call 540.
func fetching(i int, call string, place uint32) string {
	if i != 540 {
		return call
	}
	return "X\x01\x00\x00\x00zj" + string(binary.LittleEndian.AppendUint32(nil, place)) + call
}

func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	cut := func(s string) string { return s[max(i-40, 0):min(i+40, len(s))] }
	return fmt.Sprintf("%q, want %q", cut(a), cut(b))
}

// TestMostAreAlike counts the calls that are read one opcode after the other.
func TestMostAreAlike(t *testing.T) {
	by, slow := rules(), 0
	inner := by.Short
	by.Short = func(g pickle.Global, c *pickle.Cursor) any { slow++; return inner(g, c) }
	const n = 700
	v, _, err := pickle.Load(likes(n, func(_ int, call string) string { return call }), by)
	if d, ok := v.(*pickle.Dict); err != nil || !ok || len(d.Keys) != n+1 {
		t.Fatalf("got %T, %v", v, err)
	}
	// The first, and of each shape the first with a key of one, two and three digits.
	if most := 1 + 3*3; slow > most {
		t.Errorf("%d of %d calls were read slowly, want %d at most", slow, n, most)
	}
}

// TestFewAreAlike has calls that are all of another shape, after which none is looked for.
func TestFewAreAlike(t *testing.T) {
	by, slow := rules(), 0
	inner := by.Short
	by.Short = func(g pickle.Global, c *pickle.Cursor) any { slow++; return inner(g, c) }
	const n = 200
	text := likes(n, func(i int, call string) string {
		shape := "QK\x00K" + string([]byte{byte(1 + i%3)})
		return strings.Replace(call, shape, "QK\x00K"+string([]byte{byte(20 + min(i, 150))}), 1)
	})
	if _, _, err := pickle.Load(text, by); err != nil || slow != n {
		t.Errorf("%d of %d calls were read slowly, %v", slow, n, err)
	}
}
