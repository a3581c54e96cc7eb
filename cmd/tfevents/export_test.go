package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestExportJSON holds what is printed point by point against the whole list.
func TestExportJSON(t *testing.T) {
	all := []scalarPoint{{pointRow{"a<b", "loss", 1, 1.5}, number(math.NaN())}, {pointRow{".", "é\n", -2, 1700000000.25}, 3}, {pointRow{"r", "t", 3, 0}, 1e30}}
	for n := range len(all) + 1 {
		points := all[:n]
		var want, got bytes.Buffer
		if err := printJSON(&want, points); err != nil {
			t.Fatal(err)
		}
		if err := rowsAsJSON(&got, slices.Values(points)); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%d points: got %s, want %s", n, &got, &want)
		}
	}
}

// TestExportedFilesWithoutCase has tags whose files would have one name where the file
// system ignores case, and one would replace the other.
func TestExportedFilesWithoutCase(t *testing.T) {
	f := &fileTree{dir: "x", used: map[string]int{}, files: newFileSet{rehearsal: true}}
	upper, err := f.write(pointRow{Run: "run", Tag: "Input"}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	lower, err := f.write(pointRow{Run: "run", Tag: "input"}, 0, nil)
	if err != nil || strings.EqualFold(upper, lower) {
		t.Errorf("files %s and %s, %v", upper, lower, err)
	}
}
