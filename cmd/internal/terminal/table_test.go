package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := NewTable("NAME", "SIZE", "NOTE")
	table.Add("wörter", "1")
	table.Add("b", "1000000", "x")
	table.Add("c", "", "")
	want := "NAME    SIZE     NOTE\n" +
		"wörter  1\n" +
		"b       1000000  x\n" +
		"c\n"
	var out bytes.Buffer
	if err := table.Print(&out, Style{}); err != nil || out.String() != want {
		t.Errorf("%v, printed\n%swant\n%s", err, out.String(), want)
	}
	out.Reset()
	if err := table.Print(&out, Style{on: true}); err != nil || !strings.HasPrefix(out.String(), bold+"NAME    SIZE     NOTE"+plain+"\n") {
		t.Errorf("%v, with style\n%q", err, out.String())
	}
	out.Reset()
	var untitled Table
	untitled.Add("a", "b")
	if err := untitled.Print(&out, Style{on: true}); err != nil || out.String() != "a  b\n" {
		t.Errorf("%v, without titles\n%q", err, out.String())
	}
}

// TestTableOfHostileCells has names that would move the cursor or begin another row.
func TestTableOfHostileCells(t *testing.T) {
	var table Table
	table.Add("a\nb\tc", "\x1b[2J\u202e")
	table.Add("東京\u3000", bold+"x"+plain)
	want := `a\nb\tc  \x1b[2J\u202e` + "\n東京\u3000      " + bold + "x" + plain + "\n"
	var out bytes.Buffer
	if err := table.Print(&out, Style{}); err != nil || out.String() != want {
		t.Errorf("%v, printed\n%q, want\n%q", err, out.String(), want)
	}
}

// A cell wider than the limit does not widen its column.
func TestTableWithAWideCell(t *testing.T) {
	table := NewTable("NAME", "SIZE")
	table.MaxWidth = 4
	table.Add("abcd", "1")
	table.Add("abcde", "2")
	want := "NAME  SIZE\nabcd  1\nabcde  2\n"
	var out bytes.Buffer
	if err := table.Print(&out, Style{}); err != nil || out.String() != want {
		t.Errorf("%v, printed\n%swant\n%s", err, out.String(), want)
	}
}

// Rows go through more than one piece, and the widest cell comes last.
func TestTableOfManyRows(t *testing.T) {
	const rows = 50_000
	var table Table
	for i := range rows {
		table.Add(fmt.Sprint(i), "x")
	}
	table.Add(strings.Repeat("w", 100), "x")
	if len(table.pieces) < 2 {
		t.Fatal("the rows fit into one piece: this tests nothing")
	}
	var out bytes.Buffer
	if err := table.Print(&out, Style{}); err != nil {
		t.Fatal(err)
	}
	if err := table.Print(&full{room: 1, err: io.ErrShortWrite}, Style{}); err != io.ErrShortWrite {
		t.Errorf("err = %v of a writer that fails", err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != rows+2 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines[:rows] {
		if want := fmt.Sprintf("%-100d  x", i); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
}
