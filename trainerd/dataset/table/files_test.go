package table

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeAll writes a file for each text, and returns their names.
func writeAll(t *testing.T, texts ...string) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		name := filepath.Join(dir, string(rune('a'+i))+".csv")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// Several files are one table: also one without rows, or without an end of its last line.
func TestOpenAll(t *testing.T) {
	names := writeAll(t, "x;y\n1,5;a\n2;b", "x;y\n", "x;y\n3,5;c\n")
	table, err := OpenAll(names, Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var got []string
	for {
		row, err := table.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.Base(row.File())+" "+strings.Join(row.Fields, " "))
	}
	if want := "a.csv 1.5 a, a.csv 2 b, c.csv 3.5 c"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if row, err := table.Next(); err != io.EOF {
		t.Errorf("after the end: %v, %v", row, err)
	}
}

// A fault is in one of the files.
func TestOpenAllErrors(t *testing.T) {
	for _, c := range []struct {
		second, want string
	}{
		{"y,x\n3,4\n", "has the columns y, x; want those of "},
		{"x,y,z\n3,4,5\n", "has the columns x, y, z; want those of "},
		{"x,y\n3,\"4\n", "is not CSV"},
	} {
		names := writeAll(t, "x,y\n1,2\n", c.second)
		err := readAll(names)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.File != names[1] || !strings.Contains(e.Reason, c.want) {
			t.Errorf("%q: %v, want %s", c.second, err, c.want)
		}
	}
	names := append(writeAll(t, "x,y\n1,2\n"), filepath.Join(t.TempDir(), "gone.csv"))
	if err := readAll(names); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "gone.csv: cannot be opened") {
		t.Errorf("a file that is gone: %v", err)
	}
	if err := readAll([]string{names[1], names[0]}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "gone.csv: cannot be opened") {
		t.Errorf("a first file that is gone: %v", err)
	}
}

func readAll(names []string) error {
	table, err := OpenAll(names, Options{Sniff: true})
	if err != nil {
		return err
	}
	defer table.Close()
	for {
		if _, err := table.Next(); err != nil {
			return err
		}
	}
}
