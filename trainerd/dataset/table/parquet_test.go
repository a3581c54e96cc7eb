package table

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

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
	name := filepath.Join(t.TempDir(), "data")
	err := parquet.WriteFile(name, []row{
		{&word, -1, 1 << 63, true, inner{1.5}, []int32{1, 2}, 18262, at, -1234},
		{nil, 2, 3, false, inner{-2}, nil, 0, at.Truncate(24 * time.Hour), 5},
	})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := Open(name, Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if diff := cmp.Diff([]string{"name", "n", "u", "yes", "inner.size", "day", "at", "price"}, tab.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	rows, err := read(t, tab)
	want := [][]string{
		{word, "-1", "9223372036854775808", "true", "1.5", "2020-01-01", "2020-01-02T03:04:05Z", "-12.34"},
		{"", "2", "3", "false", "-2", "1970-01-01", "2020-01-02", "0.05"},
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
