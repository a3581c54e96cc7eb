package main

import (
	"slices"
	"testing"
)

func TestCompareNatural(t *testing.T) {
	want := []string{"a", "l1/k", "l2/b", "l2/k", "l10/k", "l010/k", "m", "m1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	if slices.SortFunc(got, compareNatural); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestSortByLayer(t *testing.T) {
	list := []statJSON{{Name: "x10"}, {Name: "b"}, {Name: "x9"}, {Name: "a"}}
	sortByLayer(list, func(name string) (int, bool) {
		at, ok := map[string]int{"b": 0, "a": 7}[name]
		return at, ok
	})
	for i, want := range []jsonName{"b", "a", "x9", "x10"} {
		if list[i].Name != want {
			t.Errorf("%d is %s, want %s", i, list[i].Name, want)
		}
	}
}
