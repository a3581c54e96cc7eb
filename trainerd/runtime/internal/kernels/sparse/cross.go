package sparse

import (
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/farmhash"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Crosses of features: each combination of one value of every column, hashed
// or as text.
var sparseCrossOps = exec.OpTable{
	"SparseCross":       {Build: buildSparseCross},
	"SparseCrossV2":     {Build: buildSparseCrossV2},
	"SparseCrossHashed": {Build: buildSparseCrossHashed},
}

// crossing says how a combination becomes a value.
type crossing struct {
	sparse, dense int // columns
	hashed        bool
	buckets       int
	key           uint64
	keyless       bool       // nothing is joined with the first hash
	salt          *[2]uint64 // the key of strong hashes of texts, nil for fingerprints
}

func buildSparseCross(b *exec.OpConstruction) (exec.Kernel, error) {
	x := &crossing{sparse: b.Int("N"), dense: len(b.Types("dense_types")), hashed: b.Bool("hashed_output"), buckets: b.Int("num_buckets")}
	x.key = uint64(b.Int("hash_key"))
	internal, out := b.DType("internal_type"), b.DType("out_type")
	if x.buckets < 0 || (out == exec.Int64) != x.hashed || out != exec.Int64 && out != exec.String || internal != exec.Int64 && internal != exec.String {
		b.Fail("no kernel for crosses of %s to %s in %d buckets", exec.TypeName(internal), exec.TypeName(out), x.buckets)
	}
	return x.build(b, 0)
}

func buildSparseCrossV2(b *exec.OpConstruction) (exec.Kernel, error) {
	x := &crossing{sparse: b.Int("N"), dense: len(b.Types("dense_types"))}
	return x.build(b, 1)
}

func buildSparseCrossHashed(b *exec.OpConstruction) (exec.Kernel, error) {
	x := &crossing{sparse: b.Int("N"), dense: len(b.Types("dense_types")), hashed: true, keyless: true}
	return x.build(b, 3)
}

// hashing returns how SparseCrossHashed hashes: as its inputs from first on say.
func (x crossing) hashing(c *exec.KernelContext, columns []column, first int) (*crossing, error) {
	buckets, err := c.IntScalar(first, "the number of buckets")
	if err != nil {
		return nil, err
	}
	strong, salt := c.In(first+1), c.In(first+2)
	if strong.DType != exec.Bool || strong.NumElements() != 1 || salt.DType != exec.Int64 || salt.NumElements() != 2 {
		return nil, c.Invalid("strong_hash must be a scalar and the salt two integers, not %s and %s", strong.Describe(), salt.Describe())
	}
	x.buckets = buckets
	if exec.Elems[bool](strong)[0] {
		x.salt = (*[2]uint64)(exec.Elems[uint64](salt))
	}
	for k, col := range columns {
		if x.salt != nil && col.values.DType == exec.Int64 {
			return nil, c.Errorf(tfpb.Code_UNIMPLEMENTED, "strong hashes are of strings only, and column %d is %s", k, col.values.Describe())
		}
	}
	return &x, nil
}

// build checks the inputs: indices, values and shapes of the sparse columns,
// the dense ones, and others at the end.
func (x *crossing) build(b *exec.OpConstruction, others int) (exec.Kernel, error) {
	have := b.NumInputs()
	if x.sparse < 0 || x.sparse > have || 3*x.sparse+x.dense+others != have || x.sparse+x.dense == 0 {
		b.Fail("%d inputs for %d sparse and %d dense columns", have, x.sparse, x.dense)
	}
	return func(c *exec.KernelContext) error {
		columns, rows, err := x.columns(c)
		if err != nil {
			return err
		}
		if others == 3 {
			hashed, err := x.hashing(c, columns, have-others)
			if err != nil {
				return err
			}
			return hashed.cross(c, columns, rows, "")
		}
		separator := "_X_"
		if others > 0 {
			if separator, err = c.StringScalar(have-1, "the separator"); err != nil {
				return err
			}
		}
		return x.cross(c, columns, rows, separator)
	}, nil
}

// column is one column: its values, and where those of each row begin.
type column struct {
	values *exec.Tensor
	starts []int
}

// columns reads the columns, which all must have as many rows.
func (x *crossing) columns(c *exec.KernelContext) (list []column, rows int, err error) {
	for k := range x.sparse {
		col, err := x.sparseColumn(c, k)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, col)
	}
	for k := range x.dense {
		t := c.In(3*x.sparse + k)
		if len(t.Shape) != 2 {
			return nil, 0, c.Invalid("the dense column %s is not a matrix", t.Describe())
		}
		col := column{t, rowCounts(c, t.Shape[0])}
		for i := range col.starts {
			col.starts[i] = i * t.Shape[1]
		}
		list = append(list, col)
	}
	rows = len(list[0].starts) - 1
	for k, col := range list {
		if dt := col.values.DType; dt != exec.String && dt != exec.Int64 {
			return nil, 0, c.Invalid("column %d is %s, neither string nor int64", k, col.values.Describe())
		}
		if n := len(col.starts) - 1; n != rows {
			return nil, 0, c.Invalid("a column has %d rows, another %d", rows, n)
		}
	}
	return list, rows, nil
}

// sparseColumn reads a column of indices, values and a shape.
func (x *crossing) sparseColumn(c *exec.KernelContext, k int) (column, error) {
	if c.In(k).DType != exec.Int64 || c.In(2*x.sparse+k).DType != exec.Int64 {
		return column{}, c.Invalid("the indices or the shape of column %d are not int64", k)
	}
	dims, err := sparseInput(c, k, x.sparse+k, 2*x.sparse+k)
	if err != nil {
		return column{}, err
	}
	if len(dims) != 2 {
		return column{}, c.Invalid("column %d has the shape %s, which is not a matrix", k, exec.ShapeString(dims))
	}
	col := column{c.In(x.sparse + k), rowCounts(c, dims[0])}
	index := exec.Elems[int64](c.In(k))
	for i := range col.values.NumElements() {
		if i > 0 && index[2*i] < index[2*i-2] {
			return column{}, c.Invalid("the rows of column %d are not in order", k)
		}
		col.starts[index[2*i]+1]++
	}
	for i := range dims[0] {
		col.starts[i+1] += col.starts[i]
	}
	return col, nil
}

// rowCounts returns room for where so many rows begin and the last one ends.
func rowCounts(c *exec.KernelContext, rows int) []int {
	c.CheckSize([]int{rows, 1}, 8)
	return make([]int, rows+1)
}

// combinations returns the number of combinations of a row, and whether it fits.
func combinations(columns []column, row int) (int, bool) {
	sizes := make([]int, len(columns))
	for k, col := range columns {
		sizes[k] = col.starts[row+1] - col.starts[row]
	}
	return exec.CheckedNumElements(sizes)
}

func (x *crossing) cross(c *exec.KernelContext, columns []column, rows int, separator string) error {
	total, widest := 0, 0
	for row := range rows {
		n, ok := combinations(columns, row)
		if !ok || n > c.MaxTensorBytes()-total {
			return c.Errorf(tfpb.Code_RESOURCE_EXHAUSTED, "row %d has more combinations than the limit of %d bytes holds", row, c.MaxTensorBytes())
		}
		total += n
		widest = max(widest, n)
	}
	dt := exec.String
	if x.hashed {
		dt = exec.Int64
	}
	index, values, shape := exec.Elems[int64](c.Out(0, exec.Int64, total, 2)), c.Out(1, dt, total), c.Out(2, exec.Int64, 2)
	exec.SetInt(shape, 0, rows)
	exec.SetInt(shape, 1, widest)
	o := 0
	at := make([]int, len(columns))
	for row := range rows {
		n, _ := combinations(columns, row)
		for k, col := range columns {
			at[k] = col.starts[row]
		}
		for i := range n {
			index[2*o], index[2*o+1] = int64(row), int64(i)
			if x.hashed {
				exec.Elems[int64](values)[o] = x.hash(columns, at)
			} else {
				values.Strings[o] = []byte(crossText(columns, at, separator))
			}
			o++
			for k := len(at) - 1; k >= 0; k-- {
				if at[k]++; at[k] < columns[k].starts[row+1] {
					break
				}
				at[k] = columns[k].starts[row]
			}
		}
	}
	return nil
}

// text joins a combination.
func crossText(columns []column, at []int, separator string) string {
	parts := make([]string, len(at))
	for k, i := range at {
		v := columns[k].values
		if v.DType == exec.String {
			parts[k] = string(v.Strings[i])
		} else {
			parts[k] = strconv.FormatInt(exec.Elems[int64](v)[i], 10)
		}
	}
	return strings.Join(parts, separator)
}

// hash combines the hashes of texts and the numbers themselves.
func (x *crossing) hash(columns []column, at []int) int64 {
	h := x.key
	for k, i := range at {
		v := x.hashOf(columns[k].values, i)
		if k == 0 && x.keyless {
			h = v
			continue
		}
		h = joinFingerprints(h, v)
	}
	if x.buckets > 0 {
		return int64(h % uint64(x.buckets))
	}
	return int64(h % (1<<63 - 1))
}

func (x *crossing) hashOf(t *exec.Tensor, i int) uint64 {
	switch {
	case t.DType != exec.String:
		return uint64(exec.Elems[int64](t)[i])
	case x.salt != nil:
		return elem.SipHash(x.salt[0], x.salt[1], t.Strings[i])
	}
	return farmhash.Fingerprint64(t.Strings[i])
}

// joinFingerprints makes one fingerprint of two.
func joinFingerprints(a, b uint64) uint64 {
	const m = 0xc6a4a7935bd1e995
	shift := func(v uint64) uint64 { return v ^ v>>47 }
	h := (a ^ m ^ shift(b*m)*m) * m
	return shift(shift(h) * m)
}
