package text

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var ngramOps = exec.OpTable{"StringNGrams": {Build: buildNGrams}}

// ngrams are the attributes of StringNGrams.
type ngrams struct {
	separator, left, right string
	widths                 []int
	pad                    int // how many pads on each side; negative: as many as an n-gram has room for
	keepShort              bool
}

func buildNGrams(b *exec.OpConstruction) (exec.Kernel, error) {
	g := ngrams{
		separator: b.String("separator"), left: b.String("left_pad"), right: b.String("right_pad"),
		widths: b.Ints("ngram_widths"), pad: b.Int("pad_width"), keepShort: b.Bool("preserve_short_sequences"),
	}
	for _, w := range g.widths {
		if w < 1 {
			b.Fail("an n-gram has %d tokens", w)
		}
	}
	return g.run, nil
}

// run makes the n-grams of each row, first those of the first width.
func (g *ngrams) run(c *exec.KernelContext) error {
	tokens := c.In(0).Strings
	splits, err := nGramSplits(c, len(tokens))
	if err != nil {
		return err
	}
	g.checkSize(c, splits)
	var out [][]byte
	ends := c.Out(1, c.In(1).DType, c.In(1).NumElements())
	for i := range len(splits) - 1 {
		row := tokens[splits[i]:splits[i+1]]
		before := len(out)
		for _, w := range g.widths {
			pad := g.padOf(w)
			for first := -pad; first+w <= len(row)+pad; first++ {
				out = append(out, g.join(row, first, first+w))
			}
		}
		if g.keepShort && len(out) == before && len(row) > 0 {
			out = append(out, g.join(row, -max(0, g.pad), len(row)+max(0, g.pad)))
		}
		exec.SetInt(ends, i+1, len(out))
	}
	if ends.NumElements() > 0 {
		exec.SetInt(ends, 0, 0)
	}
	d := c.Out(0, exec.String, len(out))
	copy(d.Strings, out)
	return nil
}

// checkSize bails out where the n-grams, with a byte for each token, are more than a
// tensor may have.
func (g *ngrams) checkSize(c *exec.KernelContext, splits []int) {
	total := 0
	for i := 1; i < len(splits); i++ {
		for _, w := range g.widths {
			n := splits[i] - splits[i-1] + 2*g.padOf(w) - w + 1
			total = c.CheckSize([]int{total + c.CheckSize([]int{max(0, n), w}, 1)}, 1)
		}
	}
}

// nGramSplits returns the row splits in input 1. No rows may also be no splits.
func nGramSplits(c *exec.KernelContext, tokens int) ([]int, error) {
	if tokens == 0 && c.In(1).NumElements() == 0 {
		return []int{0}, nil
	}
	return elem.RowSplits(c, 1, tokens)
}

// padOf returns how many pads n-grams of a width have on each side. At least one of
// their tokens is not a pad.
func (g *ngrams) padOf(width int) int {
	if g.pad < 0 {
		return width - 1
	}
	return min(g.pad, width-1)
}

// join joins the tokens from first to last, which are pads outside of the row.
func (g *ngrams) join(row [][]byte, first, last int) []byte {
	gram := []byte{}
	for at := first; at < last; at++ {
		if at > first {
			gram = append(gram, g.separator...)
		}
		switch {
		case at < 0:
			gram = append(gram, g.left...)
		case at >= len(row):
			gram = append(gram, g.right...)
		default:
			gram = append(gram, row[at]...)
		}
	}
	return slices.Clip(gram)
}
