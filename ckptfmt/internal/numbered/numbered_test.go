package numbered_test

import (
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/numbered"
)

func TestSame(t *testing.T) {
	for _, c := range []struct{ about, from, to, want string }{
		{"the same", "dense dense_1", "dense dense_1", "dense dense_1"},
		{"in another order", "dense_1 dense", "dense dense_1", "dense_1 dense"},
		{"a later model", "dense_1 dense_2 dense_3", "dense dense_1 dense_2", "dense dense_1 dense_2"},
		{"an earlier model", "dense dense_1", "dense_1 dense_2", "dense_1 dense_2"},
		{"nothing in common", "dense_7 dense_8", "dense dense_1", "dense dense_1"},
		{"each class by itself", "dense_1 conv2d o", "dense conv2d o", "dense conv2d o"},
		{"a model in a model", "model_1/dense_1 dense_2", "model/dense dense_1", "model/dense dense_1"},
		{"a part of the layers", "dense dense_1 dense_2", "dense dense_1", "dense dense_1 dense_2"},
		{"more of them later", "dense_1 dense_2", "dense dense_1 dense_2", "? ?"},
		{"a gap", "dense_1 dense_3", "dense dense_1", "? ?"},
		{"names of a program", "block_1 block_2", "block block_1 block_2", "block_1 block_2"},
		{"layers of a program", "block_1 block_2", "block block_1", "? ?"},
		{"no number of Keras", "dense_01 dense_0", "dense dense_1", "dense_01 dense_0"},
	} {
		kernels := func(text string) []string {
			list := strings.Fields(text)
			for i := range list {
				list[i] += "/kernel"
			}
			return list
		}
		n := numbered.Compare(kernels(c.from), kernels(c.to), func(base string) bool { return base == "dense" || base == "conv2d" || base == "model" })
		var got []string
		for _, name := range kernels(c.from) {
			same, ok := n.Same(name)
			if !ok {
				same = "?/kernel"
			}
			got = append(got, strings.TrimSuffix(same, "/kernel"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q; want %q", c.about, got, c.want)
		}
	}
}
