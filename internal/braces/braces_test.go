package braces

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	for pattern, want := range map[string][]string{
		"ckpt-*.pt":             {"ckpt-*.pt"},
		"{weights,optim}_*.npz": {"weights_*.npz", "optim_*.npz"},
		"a/{w_*.npz,m_*.json}":  {"a/w_*.npz", "a/m_*.json"},
		"{a,b}/{1,2}":           {"a/1", "a/2", "b/1", "b/2"},
		"{a,b{1,2}}x":           {"ax", "b1x", "b2x"},
		"{a}.pt":                {"{a}.pt"},
		"{a,b":                  {"{a,b"},
		"a}{b":                  {"a}{b"},
		`\{a,b}`:                {`\{a,b}`},
		"{,best-}ckpt":          {"ckpt", "best-ckpt"},
		"{}{a,b}":               {"{}a", "{}b"},
		"":                      {""},
	} {
		if diff := cmp.Diff(want, Expand(pattern)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", pattern, diff)
		}
	}
}

// A short pattern may mean any number of others.
func TestExpandIsBounded(t *testing.T) {
	for repeats, want := range map[int]int{6: Max, 7: Max + 1, 1000: Max + 1} {
		all := Expand(strings.Repeat("{1,2}", repeats))
		if len(all) != want || all[1] != strings.Repeat("1", repeats-1)+"2" {
			t.Errorf("%d times two alternatives: %d patterns, want %d; the second is %.80s", repeats, len(all), want, all[1])
		}
	}
}

func TestMatch(t *testing.T) {
	for name, want := range map[string]bool{"out/w_5.npz": true, "out/m_5.json": true, "out/x_5.npz": false, "w_5.npz": false} {
		if got := Match("out/{w_*.npz,m_*.json}", name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestJoin writes patterns so that Expand has them again.
func TestJoin(t *testing.T) {
	for want, patterns := range map[string][]string{
		"a-*":         {"a-*"},
		"{a-*,b-*}":   {"a-*", "b-*"},
		"o/{a-*,b-*}": {"o/a-*", "o/b-*"},
		"{o/a,p/a}":   {"o/a", "p/a"},
	} {
		got := Join(patterns)
		if diff := cmp.Diff(patterns, Expand(got)); got != want || diff != "" {
			t.Errorf("%v: %q, want %q (-want +got):\n%s", patterns, got, want, diff)
		}
	}
}
