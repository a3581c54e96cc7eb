package pickle

import (
	"strings"
	"testing"
)

// TestArguments holds the lengths of opcodes against what the machine knows and takes.
func TestArguments(t *testing.T) {
	for op := range 256 {
		b := string([]byte{byte(op)}) + "\x03\x00\x00\x00\x00\x00\x00\x00abcd\nef\ngh"
		u := &unpickler{rules: Rules{Allowed: func(string) bool { return true }, MaxValues: 100}, b: b, at: 1, keep: fetched{all: true}, globals: map[string]any{}, rest: map[uint32]any{}}
		u.stack = []any{"under", "module", "name"}
		err := u.step(byte(op))
		known := err == nil || !strings.Contains(err.Error(), "is not one that a state dict needs")
		if op == '.' {
			continue
		}
		if isListed := arguments[op] != unknown; known != isListed {
			t.Errorf("opcode %#02x: the machine knows it: %t; it has a length: %t", op, known, isListed)
		}
		if n := argument(b, 1); known && n != u.at-1 {
			t.Errorf("opcode %#02x takes %d bytes, argument says %d", op, u.at-1, n)
		}
	}
}

// TestMemoOfWhatIsFetched keeps two of some thousand values, whatever the numbers.
func TestMemoOfWhatIsFetched(t *testing.T) {
	var b strings.Builder
	b.WriteString("\x80\x04(")
	for range 3000 {
		b.WriteString("\x8c\x01a\x94")
	}
	b.WriteString("\x8c\x01b\x94\x8c\x01c\x94h\x07j\xb9\x0b\x00\x00t.")
	v, _, err := Load(b.String(), Rules{Allowed: func(string) bool { return false }})
	got, _ := v.(Tuple)
	if err != nil || len(got) != 3004 || got[3002] != any("a") || got[3003] != any("c") {
		t.Fatalf("%d items, %v", len(got), err)
	}
	kept := 0
	for _, word := range fetchedIn(b.String()).bits {
		for ; word > 0; word &= word - 1 {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d places are kept", kept)
	}
}

// TestMemoOfAPickleThatIsNotUnderstood keeps all.
func TestMemoOfAPickleThatIsNotUnderstood(t *testing.T) {
	for _, b := range []string{"", "\x80", "\xff", "X\xff\x00\x00\x00ab", "cno line", "j\x00", "\x8e\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if f := fetchedIn(b); !f.all {
			t.Errorf("%q: %+v", b, f)
		}
	}
	if f := fetchedIn("j\xff\xff\xff\xff."); f.all || len(f.bits) > 0 {
		t.Errorf("a place that no list has takes %d words", len(f.bits))
	}
}
