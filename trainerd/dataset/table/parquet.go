package table

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/trainerd/trainerd/internal/float16"
)

// parquetMagic begins, and ends, a Parquet file.
const parquetMagic = "PAR1"

// parquetBatch is how many rows are read at a time.
const parquetBatch = 256

// parquetRows are the rows of a Parquet file.
type parquetRows struct {
	groups  []parquet.RowGroup
	open    parquet.Rows // of the current group, may be nil
	batch   []parquet.Row
	left    []parquet.Row // of batch, not yet given out
	columns []parquetColumn
	width   int
	row     Row
}

// newParquet begins to read a Parquet file.
func newParquet(f *os.File, o Options) (t *Table, err error) {
	defer guard(&err)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, notParquet(err)
	}
	if err := checkCodecs(file.Metadata()); err != nil {
		return nil, err
	}
	p := &parquetRows{groups: rowGroups(file), batch: make([]parquet.Row, parquetBatch)}
	halves := halfFloats(file.Metadata())
	var columns []string
	for i, path := range file.Schema().Columns() {
		leaf, _ := file.Schema().Lookup(path...)
		column := parquetColumn{at: len(columns), text: textOf(leaf.Node.Type())}
		if halves[i] {
			column.text = halfText
		}
		if leaf.MaxRepetitionLevel > 0 {
			path = column.setList(path, leaf)
		}
		if path == nil {
			column.at = -1
		} else {
			columns = append(columns, strings.Join(path, "."))
		}
		p.columns = append(p.columns, column)
	}
	p.width = len(columns)
	t = &Table{Options: o, Columns: names(columns), next: p.next, close: []func() error{p.close}}
	if slices.ContainsFunc(p.columns, func(c parquetColumn) bool { return c.list }) {
		t.spreadLists()
	}
	return t, nil
}

// rowGroups returns the groups that have rows.
func rowGroups(file *parquet.File) (groups []parquet.RowGroup) {
	for _, g := range file.RowGroups() {
		if g.NumRows() > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// checkCodecs refuses pages that the library decompresses to zeros: those of
// LZ4_RAW with less than three bytes for one.
func checkCodecs(m *format.FileMetaData) error {
	for _, g := range m.RowGroups {
		for _, c := range g.Columns {
			if c.MetaData.Codec == format.Lz4Raw {
				return &Error{Reason: "is Parquet compressed with LZ4, which cannot be read", Hint: "write it with zstd, snappy or gzip"}
			}
		}
	}
	return nil
}

// halfFloats returns the columns, in the order of the file, whose values are floats
// of 16 bits. The library does not say so of their types.
func halfFloats(m *format.FileMetaData) map[int]bool {
	halves, column := make(map[int]bool), 0
	for _, e := range m.Schema {
		if e.NumChildren.Valid {
			continue
		}
		_, isHalf := e.LogicalType.Value.(*format.Float16Type)
		halves[column] = isHalf
		column++
	}
	return halves
}

// guard makes a panic of the library, on a damaged file, an error.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = notParquet(fmt.Errorf("%v", r))
	}
}

func notParquet(err error) *Error {
	return &Error{Reason: "cannot be read as Parquet", Err: err, Hint: "it may be cut short or damaged; get it again"}
}

func (p *parquetRows) close() error {
	if p.open == nil {
		return nil
	}
	open := p.open
	p.open = nil
	return open.Close()
}

func (p *parquetRows) next() (_ *Row, err error) {
	defer guard(&err)
	for len(p.left) == 0 {
		if err := p.fill(); err != nil {
			return nil, err
		}
	}
	p.row.Number++
	p.row.Fields = append(p.row.Fields[:0], make([]string, p.width)...)
	for _, v := range p.left[0] {
		if c := v.Column(); c >= 0 && c < len(p.columns) && p.columns[c].at >= 0 {
			p.columns[c].put(v, p.row.Fields)
		}
	}
	for c := range p.columns {
		p.columns[c].closeList(p.row.Fields)
	}
	p.left = p.left[1:]
	return &p.row, nil
}

// fill reads the next rows.
func (p *parquetRows) fill() error {
	if p.open == nil {
		if len(p.groups) == 0 {
			return io.EOF
		}
		p.open, p.groups = p.groups[0].Rows(), p.groups[1:]
	}
	n, err := p.open.ReadRows(p.batch)
	p.left = p.batch[:n]
	if err == io.EOF {
		return p.close()
	}
	if err != nil {
		return notParquet(err)
	}
	return nil
}

// textOf returns what writes the values of a type.
func textOf(t parquet.Type) func(parquet.Value) string {
	logical := t.LogicalType()
	if logical == nil {
		logical = &format.LogicalType{}
	}
	switch l := logical.Value.(type) {
	case *format.DateType:
		return func(v parquet.Value) string {
			return time.Unix(int64(v.Int32())*24*3600, 0).UTC().Format(time.DateOnly)
		}
	case *format.TimestampType:
		unit := unitOf(l.Unit)
		return func(v parquet.Value) string { return timeText(unit(v.Int64())) }
	case *format.DecimalType:
		return func(v parquet.Value) string { return decimalText(v, int(l.Scale)) }
	case *format.IntType:
		if !l.IsSigned {
			return unsignedText
		}
	}
	return plainText
}

// halfText writes a float of 16 bits.
func halfText(v parquet.Value) string {
	if b := v.ByteArray(); len(b) == 2 {
		return floatText(float64(float16.FromHalf(binary.LittleEndian.Uint16(b))), 32)
	}
	return ""
}

func plainText(v parquet.Value) string {
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean())
	case parquet.Float:
		return floatText(float64(v.Float()), 32)
	case parquet.Double:
		return floatText(v.Double(), 64)
	case parquet.Int96:
		// Nanoseconds of the day, then the Julian day: old timestamps of Hive.
		i := v.Int96()
		const epoch = 2440588 // 1970-01-01 as a Julian day
		return timeText(time.Unix((int64(i[2])-epoch)*24*3600, int64(i[1])<<32|int64(i[0])).UTC())
	}
	return v.String()
}

// floatText writes NaN, which pandas uses for missing values, as an empty field.
func floatText(v float64, bits int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

func unsignedText(v parquet.Value) string {
	if v.Kind() == parquet.Int32 {
		return strconv.FormatUint(uint64(v.Uint32()), 10)
	}
	return strconv.FormatUint(v.Uint64(), 10)
}

func unitOf(unit format.TimeUnit) func(int64) time.Time {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return func(n int64) time.Time { return time.UnixMilli(n).UTC() }
	case *format.MicroSeconds:
		return func(n int64) time.Time { return time.UnixMicro(n).UTC() }
	}
	return func(n int64) time.Time { return time.Unix(0, n).UTC() }
}

// timeText writes a time so that a day is a date alone.
func timeText(t time.Time) string {
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339Nano)
}

// decimalText writes a decimal, whose unscaled value is an integer or the bytes
// of one, the greatest first.
func decimalText(v parquet.Value, scale int) string {
	unscaled := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		unscaled.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		unscaled.SetInt64(v.Int64())
	default:
		b := v.ByteArray()
		unscaled.SetBytes(b)
		if len(b) > 0 && b[0] >= 0x80 {
			unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	if scale <= 0 || scale > 100 {
		return unscaled.String()
	}
	r := new(big.Rat).SetFrac(unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
	return r.FloatString(scale)
}
