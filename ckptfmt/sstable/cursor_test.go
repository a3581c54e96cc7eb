package sstable_test

import (
	"strings"
	"testing"
)

// Entries that a search does not find are errors of their own, and hide no others.
func TestHiddenEntries(t *testing.T) {
	const one, two = "\x00\x00\x00\x00\x01\x00\x00\x00", "\x00\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00"
	for _, tc := range []struct{ name, data, indexKey, want string }{
		{"in order", "\x00\x01\x00a\x00\x01\x00b\x00\x01\x00c" + one, "z", "a b c"},
		{"out of order", "\x00\x01\x00b\x00\x01\x00a\x00\x01\x00c" + one, "z", "b !a c"},
		{"out of order at a restart", "\x00\x01\x00b\x00\x01\x00a\x00\x01\x00c" + two, "z", "!b !a c"},
		{"twice", "\x00\x01\x00a\x01\x00\x00\x00\x01\x00c" + one, "z", "a !a c"},
		{"twice, apart", "\x00\x01\x00a\x00\x01\x00b\x00\x01\x00a" + one, "z", "a b !a"},
		{"after the index's key", "\x00\x01\x00a\x00\x01\x00b\x00\x01\x00c" + one, "b", "a b !c"},
		{"at a restart that TensorFlow does not look at", "\x00\x01\x00a\x00\x01\x00b\x00\x01\x00c\x00\x01\x00d\x00\x01\x00f\x00\x01\x00e\x00\x00\x00\x00\x04\x00\x00\x00\x08\x00\x00\x00\x0c\x00\x00\x00\x10\x00\x00\x00\x14\x00\x00\x00\x06\x00\x00\x00", "z", "a b c d f !e"},
		{"a restart at no entry", "\x00\x01\x00a\x00\x01\x00b\x00\x01\x00c\x00\x00\x00\x00\x05\x00\x00\x00\x02\x00\x00\x00", "z", "!a !b !c"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := open(t, table([]byte(tc.data), 0, tc.indexKey))
			var got []string
			for e, err := range r.All() {
				mark := ""
				if err != nil {
					mark = "!"
				}
				got = append(got, mark+string(e.Key))
				if _, missing := r.Get(e.Key); err == nil && missing != nil {
					t.Errorf("%q is not marked, but Get says: %v", e.Key, missing)
				}
			}
			if all := strings.Join(got, " "); all != tc.want {
				t.Errorf("got %s, want %s", all, tc.want)
			}
			if err := r.Check(); (err == nil) != !strings.Contains(tc.want, "!") {
				t.Errorf("Check: %v", err)
			}
		})
	}
}
