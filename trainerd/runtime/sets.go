package runtime

import (
	"cmp"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

var _ = register(opTable{
	"DenseToDenseSetOperation": {in: "T T", types: setTypes, build: buildSetOperation},
})

const setTypes = typeSet(1<<tfpb.DataType_DT_INT8 | 1<<tfpb.DataType_DT_INT16 | 1<<tfpb.DataType_DT_INT32 | 1<<tfpb.DataType_DT_INT64 |
	1<<tfpb.DataType_DT_UINT8 | 1<<tfpb.DataType_DT_UINT16 | 1<<tfpb.DataType_DT_STRING)

// buildSetOperation builds the op that combines the sets in the last dimension
// of two tensors; the result is a sparse tensor.
func buildSetOperation(b *builder) (kernel, error) {
	b.outputs = 3
	op := b.string("set_operation", "")
	if !slices.Contains([]string{"a-b", "b-a", "intersection", "union"}, op) {
		b.fail("attribute set_operation is %q", op)
	}
	if b.dtype("T", tNone) == tString {
		return setOperation(op, func(t *tensor, i int) string { return string(t.strs[i]) }), nil
	}
	return setOperation(op, func(t *tensor, i int) int { return int(t.realAt(i)) }), nil
}

// found is an element of a set and where it is.
type found[K comparable] struct {
	key  K
	from *tensor
	at   int
}

// setRow returns the elements of row r of t in ascending order, each once.
func setRow[K int | string](t *tensor, r int, key func(t *tensor, i int) K) []found[K] {
	n := t.dim(-1)
	list := make([]found[K], n)
	for i := range list {
		list[i] = found[K]{key(t, r*n+i), t, r*n + i}
	}
	slices.SortStableFunc(list, func(a, b found[K]) int { return cmp.Compare(a.key, b.key) })
	return slices.CompactFunc(list, func(a, b found[K]) bool { return a.key == b.key })
}

// combineSets merges two ascending sets.
func combineSets[K int | string](op string, a, b []found[K]) []found[K] {
	var out []found[K]
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = cmp.Compare(a[0].key, b[0].key)
		}
		switch {
		case order < 0:
			if op == "a-b" || op == "union" {
				out = append(out, a[0])
			}
			a = a[1:]
		case order > 0:
			if op == "b-a" || op == "union" {
				out = append(out, b[0])
			}
			b = b[1:]
		default:
			if op == "intersection" || op == "union" {
				out = append(out, a[0])
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

func setOperation[K int | string](op string, key func(t *tensor, i int) K) kernel {
	return func(c *call) error {
		x, y := c.in(0), c.in(1)
		r := len(x.shape)
		if r < 2 || r > maxRank || len(y.shape) != r || !sameShape(x.shape[:r-1], y.shape[:r-1]) {
			return c.invalid("%s and %s do not hold the same number of sets", x.describe(), y.describe())
		}
		rows := product(x.shape[:r-1])
		results := make([][]found[K], rows)
		total, widest := 0, 0
		for i := range rows {
			results[i] = combineSets(op, setRow(x, i, key), setRow(y, i, key))
			total += len(results[i])
			widest = max(widest, len(results[i]))
		}
		index := elems[int64](c.out(0, tInt64, total, r))
		values := c.out(1, x.dtype, total)
		shape := elems[int64](c.out(2, tInt64, r))
		for i, d := range x.shape[:r-1] {
			shape[i] = int64(d)
		}
		shape[r-1] = int64(widest)
		at := 0
		for i, list := range results {
			for k, v := range list {
				place := index[at*r : (at+1)*r]
				place[r-1] = int64(k)
				for j, rest := r-2, i; j >= 0; j-- {
					place[j] = int64(rest % x.shape[j])
					rest /= x.shape[j]
				}
				copyElems(values, at, v.from, v.at, 1)
				at++
			}
		}
		return nil
	}
}
