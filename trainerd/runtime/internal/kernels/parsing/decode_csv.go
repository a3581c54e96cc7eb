package parsing

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var decodeCSVOps = exec.OpTable{
	"DecodeRaw": {Types: exec.PlainTypes, TypeAttr: "out_type", Build: buildDecodeRaw},
	"DecodeCSV": {Build: buildDecodeCSV},
}

func buildDecodeRaw(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("out_type")
	swap := b.Bool("little_endian") == exec.BigEndian
	size := exec.ElemSize(dt)
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		n := 0
		for i, s := range x.Strings {
			if i == 0 {
				n = len(s)
			}
			if len(s) != n || n%size != 0 {
				return c.Invalid("element %d has %d bytes, element 0 has %d, a value takes %d", i, len(s), n, size)
			}
		}
		d := c.Out(0, dt, append(append(c.ScratchInts(0, 0), x.Shape...), n/size)...)
		for i, s := range x.Strings {
			copy(d.Data[i*n:], s)
		}
		if swap {
			exec.SwapBytes(d.Data, exec.WordSize(dt))
		}
		return nil
	}, nil
}

func buildDecodeCSV(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("OUT_TYPE")
	delim, quotes, na := b.String("field_delim"), b.Bool("use_quote_delim"), b.String("na_value")
	cols := b.Ints("select_cols")
	if len(delim) != 1 || len(types) != b.NumInputs()-1 || len(cols) > 0 && len(cols) != len(types) {
		b.Fail("%d types for %d defaults, %d columns, delimiter %q", len(types), b.NumInputs()-1, len(cols), delim)
	}
	format := csvFormat{delim: delim[0], quotes: quotes, na: na, cols: cols}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		for k, dt := range types {
			c.OutLike(k, dt, x)
			if def := c.In(k + 1); def.DType != dt {
				return c.Invalid("the default of column %d is %s, not %s", k, exec.TypeName(def.DType), exec.TypeName(dt))
			}
		}
		j := csvJob{csvFormat: format, c: c, lines: x.Strings, columns: len(types)}
		return j.run()
	}, nil
}

// csvFormat says how lines are split.
type csvFormat struct {
	delim  byte
	quotes bool
	na     string
	cols   []int // of the outputs; none: all
}

// csvJob decodes lines. Its parts are spans of them.
type csvJob struct {
	csvFormat
	c       *exec.KernelContext
	lines   [][]byte
	columns int
	errs    [exec.MaxParts]error // of each part the first
}

// partLines is how many lines are worth a hand-off to another processor.
const partLines = 8

func (j *csvJob) run() error {
	parts := min(len(j.lines)/partLines, exec.MaxParts)
	if parts <= 1 {
		return j.span(0, len(j.lines))
	}
	parallel.Run(parts, j)
	for _, err := range j.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Part implements [parallel.Job].
func (j *csvJob) Part(i, n int) {
	from, to := parallel.Span(len(j.lines), partLines, i, n)
	j.errs[i] = j.span(from, to)
}

func (j *csvJob) span(from, to int) error {
	var fields [][]byte
	most := j.most()
	for i := from; i < to; i++ {
		var err error
		if fields, err = splitCSV(fields[:0], j.lines[i], most, j.delim, j.quotes); err != nil {
			return j.c.Invalid("record %d: %v", i, err)
		}
		if err := j.line(i, fields); err != nil {
			return err
		}
	}
	return nil
}

// most returns how many fields of a line are needed.
func (j *csvJob) most() int {
	if len(j.cols) == 0 {
		return math.MaxInt // to count them
	}
	return max(0, slices.Max(j.cols)+1)
}

// line stores the fields of line i.
func (j *csvJob) line(i int, fields [][]byte) error {
	if len(j.cols) == 0 && len(fields) != j.columns {
		return j.c.Invalid("record %d has %d fields, not %d", i, len(fields), j.columns)
	}
	for k := range j.columns {
		at := k
		if len(j.cols) > 0 {
			at = j.cols[k]
		}
		if at < 0 || at >= len(fields) {
			return j.c.Invalid("record %d has %d fields and no column %d", i, len(fields), at)
		}
		if err := csvField(j.c, k, i, fields[at], j.na); err != nil {
			return err
		}
	}
	return nil
}

// csvField stores a field in element i of output k; an empty one gets the
// default.
func csvField(c *exec.KernelContext, k, i int, field []byte, na string) error {
	d := c.Output(k)
	if len(field) == 0 || string(field) == na {
		def := c.In(k + 1)
		if def.NumElements() != 1 {
			return c.Invalid("field %d is required but missing in record %d", k, i)
		}
		exec.CopyElems(d, i, def, 0, 1)
		return nil
	}
	if d.DType == exec.String {
		d.Strings[i] = field
		return nil
	}
	if err := elem.ParseNumber(d, i, bytes.TrimSpace(field)); err != nil {
		return c.Invalid("field %d in record %d is not a valid %s: %s", k, i, exec.TypeName(d.DType), field)
	}
	return nil
}

// splitCSV appends the first most fields of a line, split as TensorFlow does it: as RFC
// 4180 has it, but that a field may begin with line breaks, which are left out. Fields are
// parts of the line where they can.
func splitCSV(fields [][]byte, line []byte, most int, delim byte, quotes bool) ([][]byte, error) {
	breaks := bytes.IndexByte(line, '\n') >= 0 || bytes.IndexByte(line, '\r') >= 0
	plain := !breaks && (!quotes || bytes.IndexByte(line, '"') < 0)
	after := false // a delimiter
	for len(fields) < most {
		if len(line) == 0 && after {
			return append(fields, line), nil
		}
		if breaks {
			line = bytes.TrimLeft(line, "\r\n")
		}
		if len(line) == 0 {
			return fields, nil
		}
		var field []byte
		var err error
		if quotes && line[0] == '"' {
			field, line, after, err = quotedField(line[1:], delim)
		} else {
			field, line, after = cutField(line, delim)
			if !plain {
				err = checkUnquoted(field, quotes)
			}
		}
		if err != nil {
			return fields, err
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// cutField returns a field, what follows the delimiter after it, and whether there is one.
func cutField(line []byte, delim byte) (field, rest []byte, after bool) {
	i := bytes.IndexByte(line, delim)
	if i < 0 {
		return line[:len(line):len(line)], nil, false
	}
	return line[:i:i], line[i+1:], true
}

func checkUnquoted(field []byte, quotes bool) error {
	for _, b := range field {
		if b == '\n' || b == '\r' || quotes && b == '"' {
			return fmt.Errorf("a field without quotes has %q in it", b)
		}
	}
	return nil
}

// quotedField is cutField for a field after its first quote.
func quotedField(line []byte, delim byte) (field, rest []byte, after bool, err error) {
	field, rest, err = quoted(line)
	switch {
	case err != nil || len(rest) == 0:
		return field, rest, false, err
	case rest[0] != delim:
		return nil, nil, false, fmt.Errorf("a quoted field is followed by %q", rest[0])
	}
	return field, rest[1:], true, nil
}

// quoted returns a field that ends with a quote, and what follows.
func quoted(line []byte) (field, rest []byte, err error) {
	for {
		i := bytes.IndexByte(line, '"')
		if i < 0 {
			return nil, nil, errors.New("a quote is not closed")
		}
		part := line[:i:i]
		line = line[i+1:]
		isDouble := len(line) > 0 && line[0] == '"'
		if field == nil && !isDouble {
			return part, line, nil
		}
		if field = append(field, part...); !isDouble {
			return field, line, nil
		}
		field, line = append(field, '"'), line[1:]
	}
}
