package main

import (
	"bytes"
	"math"
	"slices"
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
