package pickle

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// place is a place of the memo as an opcode has it.
func place(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

// rowOf is a dict of n calls with a text of their own, as torch writes them: the name of item
// i is at place 2+4*i, its text after that, its value at 5+4*i. fetch is done at its end.
func rowOf(n int, fetch string) string {
	var b strings.Builder
	b.WriteString("\x80\x02}q\x00cm\nf\nq\x010(")
	for i := range n {
		at, text := 2+4*i, fmt.Sprintf("%06d", i)
		b.WriteString("X\x06\x00\x00\x00" + text + "r" + place(at) + "h\x01(X\x06\x00\x00\x00" + text + "r" + place(at+1) + "tr" + place(at+2) + "Rr" + place(at+3))
	}
	return b.String() + fetch + "u."
}

// textCalls are rules by which a call returns its text.
func textCalls() Rules {
	return Rules{
		Allowed: func(string) bool { return true },
		Call:    func(_ string, args Tuple) (any, error) { return args[0], nil },
		Short:   func(_ Global, c *Cursor) any { return c.OwnText() },
		Alike:   func(_ any, own string) any { return own },
	}
}

// TestRow reads a long row of items, whose names and values the memo does not keep.
func TestRow(t *testing.T) {
	const n = 3 * earlyPlaces
	rules := textCalls()
	rules.MaxValues = maxValues
	inner, slow := rules.Short, 0
	rules.Short = func(g Global, c *Cursor) any {
		slow++
		return inner(g, c)
	}
	u := newUnpickler(rowOf(n, ""), rules)
	v, _, err := u.load()
	d, ok := v.(*Dict)
	if err != nil || !ok || len(d.Keys) != n || d.Get("000017") != any("000017") {
		t.Fatalf("got %T, %v", v, err)
	}
	if slow > 1 || len(u.memo.late) > 1 { // the last one
		t.Errorf("%d of %d items were read slowly, the memo has %d values", slow, n, len(u.memo.late))
	}
}

// TestRowThatIsFetched fetches the name and the value of an item of a long row, and its text.
func TestRowThatIsFetched(t *testing.T) {
	const n, i = 3 * earlyPlaces, 2 * earlyPlaces
	for _, at := range []int{2 + 4*i, 3 + 4*i, 5 + 4*i} {
		v, _, err := Load(rowOf(n, "X\x01\x00\x00\x00zj"+place(at)), textCalls())
		d, ok := v.(*Dict)
		if err != nil || !ok || len(d.Keys) != n+1 || d.Get("z") != any(fmt.Sprintf("%06d", i)) {
			t.Errorf("place %d: got %T, %v", at, v, err)
		}
	}
}
