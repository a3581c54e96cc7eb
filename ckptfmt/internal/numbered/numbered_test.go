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
		{"one known and one not", "dense_1 dense_2 conv2d_1 conv2d_3", "dense dense_1 conv2d conv2d_1", "dense dense_1 ? ?"},
		{"a class that is not there", "dense_1 conv2d", "conv2d o", "dense_1 conv2d"},
		{"other names of a program", "block_1 block_2", "block_3", "block_1 block_2"},
		{"numbers after a zero", "block_01 block_01_2", "block_01_1 block_01_2", "? ?"},
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

// TestLastSegment is that of a variable, and no layer.
func TestLastSegment(t *testing.T) {
	n := numbered.Compare([]string{"dense_1/dense_1", "a/dense_2/b"}, []string{"dense/dense_1", "a/dense_1/b"}, func(base string) bool { return base == "dense" })
	if got, ok := n.Same("dense_1/dense_1"); got != "dense/dense_1" || !ok {
		t.Errorf("got %q, %t", got, ok)
	}
}

func TestBase(t *testing.T) {
	for segment, want := range map[string]string{
		"dense_1": "dense", "a_1": "a", "dense_12": "dense", "a_b_3": "a_b",
		"dense": "dense", "_1": "_1", "dense_0": "dense_0", "dense_01": "dense_01", "dense_-1": "dense_-1", "dense_+1": "dense_+1", "dense_": "dense_",
		"dense_x": "dense_x", "dense_99999999999999999999": "dense_99999999999999999999",
	} {
		if got := numbered.Base(segment); got != want {
			t.Errorf("%s: %q, want %q", segment, got, want)
		}
	}
}

func TestIsNumber(t *testing.T) {
	for name, want := range map[string]bool{"optimizer/7": true, "12": true, "a/b/0": true, "optimizer/a7": false, "7/a": false, "a7": false} {
		if got := numbered.IsNumber(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
