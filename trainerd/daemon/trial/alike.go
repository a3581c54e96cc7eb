package trial

import (
	"os"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/formats"
)

// alike reports whether a program could load either of two files of one kind: they have tensors of
// the same names, or, where these cannot be read, nearly the same size. Weights alone are not like
// weights with the state of an optimizer.
func alike(a, b string) bool {
	x, y := tensorsIn(a), tensorsIn(b)
	if x != nil && y != nil {
		return slices.Equal(x, y)
	}
	const part = 10 // of the size
	first, err := os.Stat(a)
	second, other := os.Stat(b)
	if err != nil || other != nil {
		return true // which nothing contradicts
	}
	less, more := min(first.Size(), second.Size()), max(first.Size(), second.Size())
	return part*(more-less) <= more
}

// tensorsIn returns the names of the tensors in a file, in order; nil if it cannot be read.
func tensorsIn(name string) (names []string) {
	file, err := formats.Find(name)
	if err != nil {
		return nil
	}
	r, err := file.Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	for t, err := range r.Tensors() {
		if err != nil {
			return nil
		}
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}
