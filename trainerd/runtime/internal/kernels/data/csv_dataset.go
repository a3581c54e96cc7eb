package data

import (
	"bytes"
	"fmt"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Data sets of files of comma-separated values.
var csvOps = exec.OpTable{
	"CSVDataset":   datasetOp(buildCSVDataset),
	"CSVDatasetV2": datasetOp(buildCSVDataset),
}

func invalidRecord(format string, args ...any) error {
	return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf(format, args...)}
}

// The inputs of the op before and after the defaults, one for each column.
const (
	csvFiles = iota
	csvCompression
	csvBuffer
	csvHeader
	csvDelim
	csvQuotes
	csvNA
	csvSelected
	csvDefaults
)

func buildCSVDataset(b *exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	types := b.Types("output_types")
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		columns, err := csvColumnsOf(c, types)
		if err != nil {
			return nil, err
		}
		compression, err := c.StringScalar(csvCompression, "the compression")
		if err != nil {
			return nil, err
		}
		var names []string
		for _, name := range c.In(csvFiles).Strings {
			names = append(names, string(name))
		}
		open := columns.format.opener(compression, c.MaxRead())
		return variant.OpenFunc(func(*variant.IteratorContext) (variant.Iterator, error) {
			return &csvIterator{fileIterator: &fileIterator{names: names, openFile: open}, columns: columns}, nil
		}), nil
	}
}

// csvColumns says what becomes of the fields of a record.
type csvColumns struct {
	format   csvFormat
	na       string
	types    []tfpb.DataType
	defaults variant.Tuple // one number or none, where a field is required
	selected []int         // of the fields, those that are wanted; nil for all but
	excluded []int         // these
}

func csvColumnsOf(c *exec.KernelContext, types []tfpb.DataType) (*csvColumns, error) {
	delim, err := c.StringScalar(csvDelim, "the delimiter")
	if err != nil {
		return nil, err
	}
	na, err := c.StringScalar(csvNA, "the value of a missing field")
	if err != nil {
		return nil, err
	}
	if header, quotes := c.In(csvHeader), c.In(csvQuotes); header.DType != exec.Bool || quotes.DType != exec.Bool || header.NumElements() != 1 || quotes.NumElements() != 1 {
		return nil, c.Invalid("whether there are a header and quotes: %s and %s", header.Describe(), quotes.Describe())
	}
	if len(delim) != 1 || c.NumInputs() < csvDefaults+len(types) {
		return nil, c.Invalid("a delimiter %q of more than one byte, or not a default for each of %d columns", delim, len(types))
	}
	columns := &csvColumns{na: na, types: types, defaults: copies(c, csvDefaults, csvDefaults+len(types))}
	columns.format = csvFormat{delim: delim[0], header: exec.Elems[bool](c.In(csvHeader))[0], quotes: exec.Elems[bool](c.In(csvQuotes))[0]}
	columns.selected = slices.Clone(c.IntsOf(0, c.In(csvSelected)))
	if last := csvDefaults + len(types); last < c.NumInputs() {
		columns.excluded = slices.Clone(c.IntsOf(0, c.In(last)))
	}
	return columns, columns.check(c)
}

func (cols *csvColumns) check(c *exec.KernelContext) error {
	for i, t := range cols.defaults {
		if t.DType != cols.types[i] || t.NumElements() > 1 {
			return c.Invalid("the default of column %d is %s, want at most one %s", i, t.Describe(), exec.TypeName(cols.types[i]))
		}
	}
	if len(cols.selected) > 0 && len(cols.excluded) > 0 {
		return c.Invalid("columns cannot be both selected and excluded")
	}
	for _, list := range [][]int{cols.selected, cols.excluded} {
		for i, at := range list {
			if at < 0 || i > 0 && at <= list[i-1] {
				return c.Invalid("the columns %v are not strictly increasing", list)
			}
		}
	}
	if n := len(cols.selected); n > 0 && n != len(cols.types) {
		return c.Invalid("%d columns are selected, with %d defaults", n, len(cols.types))
	}
	return nil
}

// wants reports whether field i is wanted.
func (cols *csvColumns) wants(i int) bool {
	if len(cols.selected) > 0 {
		return slices.Contains(cols.selected, i)
	}
	return !slices.Contains(cols.excluded, i)
}

// element returns the tensors of a record.
func (cols *csvColumns) element(record []byte) (variant.Tuple, error) {
	fields, err := cols.format.split(nil, record)
	el := make(variant.Tuple, 0, len(cols.types))
	for i, field := range fields {
		if !cols.wants(i) {
			continue
		}
		if len(el) == len(cols.types) {
			return nil, invalidRecord("a record has more than the %d fields that are expected", len(cols.types))
		}
		t, wrong := cols.value(len(el), field)
		if err == nil {
			err = wrong
		}
		el = append(el, t)
	}
	if err == nil && len(el) != len(cols.types) {
		err = invalidRecord("a record has %d fields, %d are expected", len(el), len(cols.types))
	}
	if err != nil {
		return nil, invalidRecord("%v", err)
	}
	return el, nil
}

// value returns the tensor of a field of column k.
func (cols *csvColumns) value(k int, field []byte) (*exec.Tensor, error) {
	t := exec.NewTensor(cols.types[k], nil)
	if len(field) == 0 || string(field) == cols.na {
		if cols.defaults[k].NumElements() == 0 {
			return t, fmt.Errorf("field %d is required but missing in a record", k)
		}
		exec.CopyElems(t, 0, cols.defaults[k], 0, 1)
		return t, nil
	}
	if t.DType == exec.String {
		t.Strings[0] = bytes.Clone(field)
		return t, nil
	}
	if err := elem.ParseNumber(t, 0, bytes.TrimSpace(field)); err != nil {
		return t, fmt.Errorf("field %d of a record is not a valid %s: %s", k, exec.TypeName(t.DType), field)
	}
	return t, nil
}

// csvIterator goes through the records of files.
type csvIterator struct {
	*fileIterator
	columns *csvColumns
}

func (w *csvIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	record, err := w.fileIterator.Next(p)
	if err != nil {
		return nil, err
	}
	return w.columns.element(record[0].Strings[0])
}
