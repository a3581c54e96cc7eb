package clidoc

import (
	"slices"
	"strings"
	"testing"
)

func TestWrapLine(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"", []string{""}},
		{"   short", []string{"   short"}},
		{"   --flag X  what it is for and more", []string{"   --flag X  what it", "             is for", "             and", "             more"}},
		{"   a text that is longer than that", []string{"   a text that is", "   longer than that"}},
		{"  3  a code, and what it means", []string{"  3  a code, and", "     what it means"}},
		{"   --a-very-long-flag  about it", []string{"   --a-very-long-flag", "       about it"}},
		{"   averyveryverylongword12345 x", []string{"   averyveryverylongword12345", "   x"}},
	} {
		got := wrapLine(c.line, 20)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
		if words := strings.Fields(strings.Join(got, " ")); !slices.Equal(words, strings.Fields(c.line)) {
			t.Errorf("%q lost words: %q", c.line, got)
		}
	}
}
