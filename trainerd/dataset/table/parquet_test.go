package table

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
)

// parquetOf opens a file with some rows.
func parquetOf[T any](t *testing.T, rows []T) *Table {
	t.Helper()
	name := filepath.Join(t.TempDir(), "data")
	if err := parquet.WriteFile(name, rows); err != nil {
		t.Fatal(err)
	}
	tab, err := Open(name, Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tab.Close() })
	return tab
}

func TestParquet(t *testing.T) {
	type inner struct {
		Size float64 `parquet:"size"`
	}
	type row struct {
		Name  *string   `parquet:"name,optional"`
		N     int32     `parquet:"n"`
		U     uint64    `parquet:"u"`
		Yes   bool      `parquet:"yes"`
		Inner inner     `parquet:"inner"`
		Many  []int32   `parquet:"many"`
		Day   int32     `parquet:"day,date"`
		At    time.Time `parquet:"at,timestamp(millisecond)"`
		Price int64     `parquet:"price,decimal(2:18)"`
	}
	word := "é, \"x\""
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	tab := parquetOf(t, []row{
		{&word, -1, 1 << 63, true, inner{1.5}, []int32{1, 2}, 18262, at, -1234},
		{nil, 2, 3, false, inner{-2}, nil, 0, at.Truncate(24 * time.Hour), 5},
	})
	if diff := cmp.Diff([]string{"name", "n", "u", "yes", "inner.size", "many.0", "many.1", "day", "at", "price"}, tab.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	rows, err := read(t, tab)
	want := [][]string{
		{word, "-1", "9223372036854775808", "true", "1.5", "1", "2", "2020-01-01", "2020-01-02T03:04:05Z", "-12.34"},
		{"", "2", "3", "false", "-2", "", "", "1970-01-01", "2020-01-02", "0.05"},
	}
	if diff := cmp.Diff(want, rows); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A file that is cut or damaged anywhere is an error or another table, never a
// panic.
func TestDamagedParquet(t *testing.T) {
	type row struct {
		A int64  `parquet:"a"`
		B string `parquet:"b,dict"`
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "data")
	if err := parquet.WriteFile(name, []row{{1, "x"}, {2, "y"}, {3, "x"}}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(whole); n += 1 + n%7 {
		for _, b := range [][]byte{whole[:n], flip(whole, n)} {
			if err := os.WriteFile(name, b, 0o666); err != nil {
				t.Fatal(err)
			}
			tab, err := Open(name, Options{Format: Parquet})
			if err == nil {
				_, err = read(t, tab)
				tab.Close()
			}
			if e := new(Error); err != nil && !errors.As(err, &e) {
				t.Fatalf("byte %d: %T %v", n, err, err)
			}
		}
	}
}

func flip(b []byte, n int) []byte {
	b = append([]byte(nil), b...)
	b[n] ^= 0x41
	return b
}

// Values that hardly compress are the same with each codec, and an error with the
// one that the library does not decompress.
func TestParquetCodecs(t *testing.T) {
	type row struct {
		X float64 `parquet:"x"`
	}
	var rows []row
	want := []string{}
	for i := range 300 {
		rows = append(rows, row{math.Sin(float64(i))})
		want = append(want, strconv.FormatFloat(rows[i].X, 'g', -1, 64))
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw} {
		name := filepath.Join(t.TempDir(), "data.parquet")
		if err := parquet.WriteFile(name, rows, parquet.Compression(codec)); err != nil {
			t.Fatal(err)
		}
		tab, err := Open(name, Options{Sniff: true})
		if codec == &parquet.Lz4Raw {
			if err == nil || !strings.Contains(err.Error(), "compressed with LZ4, which cannot be read; write it with zstd") {
				t.Errorf("%s: %v", codec, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		read, err := read(t, tab)
		var got []string
		for _, r := range read {
			got = append(got, r[0])
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", codec, err, diff)
		}
		tab.Close()
	}
}

// A file without rows, whose group of rows is empty.
func TestParquetWithoutRows(t *testing.T) {
	type row struct {
		X float64 `parquet:"x"`
	}
	name := filepath.Join(t.TempDir(), "data.parquet")
	if err := parquet.WriteFile(name, []row{}); err != nil {
		t.Fatal(err)
	}
	tab, err := Open(name, Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if rows, err := read(t, tab); len(rows) != 0 || err != nil {
		t.Errorf("%v, %v", rows, err)
	}
}

// Floats of 16 bits, as numpy and pandas write them.
func TestParquetHalves(t *testing.T) {
	schema := parquet.NewSchema("row", parquet.Group{
		"a": parquet.Leaf(parquet.FixedLenByteArrayType(2)),
		"h": parquet.Optional(float16Node{parquet.Leaf(parquet.FixedLenByteArrayType(2))}),
	})
	var b bytes.Buffer
	w := parquet.NewWriter(&b, schema)
	for _, h := range [][]byte{{0, 0x3e}, {0, 0xc0}} {
		row := parquet.Row{parquet.FixedLenByteArrayValue([]byte("xy")).Level(0, 0, 0), parquet.FixedLenByteArrayValue(h).Level(0, 1, 1)}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "data.parquet")
	if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	tab, err := Open(name, Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	rows, err := read(t, tab)
	if diff := cmp.Diff([][]string{{"xy", "1.5"}, {"xy", "-2"}}, rows); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// float16Node is a column of floats of 16 bits.
type float16Node struct{ parquet.Node }

func (float16Node) Type() parquet.Type {
	return float16Type{parquet.FixedLenByteArrayType(2)}
}

type float16Type struct{ parquet.Type }

func (float16Type) LogicalType() *format.LogicalType {
	return &format.LogicalType{Value: new(format.Float16Type)}
}
