package text_test

import (
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestNGrams makes n-grams of three rows, the second of them empty, with the values
// of TensorFlow.
func TestNGrams(t *testing.T) {
	tests := map[string]struct {
		widths   []int64
		pad      int
		short    bool
		want     []string
		wantEnds []int64
	}{
		"two":         {widths: []int64{2}, want: []string{"a b", "b c"}, wantEnds: []int64{0, 2, 2, 2}},
		"two and one": {widths: []int64{2, 1}, want: []string{"a b", "b c", "a", "b", "c", "d"}, wantEnds: []int64{0, 5, 5, 6}},
		"padded": {widths: []int64{2}, pad: -1, want: []string{"< a", "a b", "b c", "c >", "< >", "< d", "d >"},
			wantEnds: []int64{0, 4, 5, 7}},
		"short rows": {widths: []int64{3}, short: true, want: []string{"a b c", "d"}, wantEnds: []int64{0, 1, 1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := kerneltest.New(t)
			n := g.Node("StringNGrams", []string{kerneltest.Vector(g, "a", "b", "c", "d"), kerneltest.Vector[int64](g, 0, 3, 3, 4)}, "separator", " ",
				"left_pad", "<", "right_pad", ">", "ngram_widths", test.widths, "pad_width", test.pad, "preserve_short_sequences", test.short)
			got := g.Run([]string{n, n + ":1"})
			kerneltest.Want(t, got[0], test.want...)
			kerneltest.Want(t, got[1], test.wantEnds...)
		})
	}
}

// TestHostileNGrams refuses splits that are none, and n-grams that no memory holds.
func TestHostileNGrams(t *testing.T) {
	for name, test := range map[string]struct {
		splits []int64
		width  int64
	}{
		"back": {[]int64{0, 3, 1, 2}, 1}, "short": {[]int64{0, 1}, 1}, "late": {[]int64{1, 2}, 1}, "none": {nil, 1}, "huge": {[]int64{0, 2}, 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			g := kerneltest.New(t)
			n := g.Node("StringNGrams", []string{kerneltest.Vector(g, "a", "b"), kerneltest.Vector(g, test.splits...)}, "separator", " ",
				"left_pad", "", "right_pad", "", "ngram_widths", []int64{test.width}, "pad_width", -1, "preserve_short_sequences", false)
			if got, err := g.Try([]string{n}); err == nil {
				t.Errorf("got %v", got[0])
			}
		})
	}
}
