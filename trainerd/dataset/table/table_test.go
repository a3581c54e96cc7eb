package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/charmap"
	utf16 "golang.org/x/text/encoding/unicode"
)

// read returns all rows, and the error if it is not the end.
func read(t *testing.T, tab *Table) (rows [][]string, err error) {
	t.Helper()
	for {
		row, err := tab.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, append([]string(nil), row.Fields...))
	}
}

func TestSniff(t *testing.T) {
	const people = "name;size;born\n\"Müller; Jan\";1,75;2001-02-03\nLi;1,6;1999-12-31\nO'Hara;2;2000-01-01\n"
	for _, c := range []struct {
		name, text string
		want       string // dialect
		columns    string
		first      []string
	}{
		{"plain", "1,2,0\n3,4,1\n", ",", "0 1 2", []string{"1", "2", "0"}},
		{"header", "a,b\n1,2\n3,4\n", ", header", "a b", []string{"1", "2"}},
		{"semicolons, decimal commas", people, "; header decimal ,", "name size born", []string{"Müller; Jan", "1.75", "2001-02-03"}},
		{"decimal commas alone", "1,5;2,5;0\n2,5;3,5;1\n", "; decimal ,", "0 1 2", []string{"1.5", "2.5", "0"}},
		{"thousands and decimal commas", "p;y\n1.234,5;0\n12,25;1\n", "; header decimal , thousands .", "p y", []string{"1234.5", "0"}},
		{"thousands without decimals next to decimal commas", "a;b;y\n1,5;999;0\n2,5;1.001;1\n3,5;12.500;1\n", "; header decimal , thousands .", "a b y", []string{"1.5", "999", "0"}},
		{"thousands", "p,y\n\"1,234\",0\n\"22,000\",1\n900,0\n", ", header thousands ,", "p y", []string{"1234", "0"}},
		{"a date is no number", "d;y\n01,02,2020;1\n02,03,2021;0\n", "; header", "d y", []string{"01,02,2020", "1"}},
		{"tabs with empty fields", "a\tb\tc\n1\t\t3\n\t2\t3\n", "tab header", "a b c", []string{"1", "", "3"}},
		{"runs of blanks", "  GPA  TUCE GRADE\n 2.66    20   0 \n 2.89    22   1\n", "blank header", "GPA TUCE GRADE", []string{"2.66", "20", "0"}},
		{"columns aligned by blanks, and a tab", "18.0   8   307.0  3504.  1\t\"ford torino\"\n15.5  8  350.0  ?  2\t\"amc rebel sst\"\n", "blank",
			"0 1 2 3 4 5", []string{"18.0", "8", "307.0", "3504.", "1", "ford torino"}},
		{"numbers with blanks in one column", "c\tp\tn\n1\t70 80 82\t5\n2\t3 4 6\t6\n", "tab header", "c p n", []string{"1", "70 80 82", "5"}},
		{"a first row with a missing number", "3,?,4,a\n1,2,3,b\n", ",", "0 1 2 3", []string{"3", "?", "4", "a"}},
		{"bars", "a|b\n1|x, y\n2|z\n", "| header", "a b", []string{"1", "x, y"}},
		{"single quotes", "a,b\n'x, y',1\n'it''s',2\n", ", quote ' header", "a b", []string{"x, y", "1"}},
		{"single quotes in the header alone", "'a' 'b'\n1 2\n3 4\n", "blank quote ' header", "a b", []string{"1", "2"}},
		{"comments", "# made\n# by hand\na,b\n1,2\n# more\n3,4\n", ", comment # header", "a b", []string{"1", "2"}},
		{"a header behind a mark", "#a,b\n1,2\n3,4\n", ", header", "a b", []string{"1", "2"}},
		{"names like numbers", "(1),$2,50%,1.-,y\n(7),$8,9%,2.-,0\n1,2,3,4,1\n", ", header", "(1) $2 50% 1.- y", []string{"-7", "8", "9", "-2.", "0"}},
		{"titles with separators", "Sales of 2020,,\n,,\nby region,,\nregion,n,y\nN,1,2\nS,3,4\n,,\nTotal,4,6\n", ", skip 3 header", "region n y", []string{"N", "1", "2"}},
		{"a first row with a value alone", "x,,\ny,1,2\nx,3,4\ny,5,6\n", ",", "0 1 2", []string{"x", "", ""}},
		{"titles between empty columns", ";;;\n;Sales of 2020;;\n;;;\n;region;n;\n;N;1;\n;S;3;\n;;;\n;Total;4;\n", "; skip 3 header", "Unnamed: 0 region n Unnamed: 3", []string{"", "N", "1", ""}},
		{"a title", "Sales of 2020\n\na,b,c\n1,2,3\n4,5,6\n7,8,9\n", ", skip 2 header", "a b c", []string{"1", "2", "3"}},
		{"scikit-learn's size", "3,2,setosa,virginica\n5.1,3.5,0\n4.9,3.0,1\n4.7,3.2,1\n", ", skip 1", "0 1 2", []string{"5.1", "3.5", "0"}},
		{"its size in a row of equal length", "3,2,setosa\n5.1,3.5,0\n4.9,3.0,1\n4.7,3.2,1\n", ", skip 1", "0 1 2", []string{"5.1", "3.5", "0"}},
		{"an index without a name", ",a,b\n0,1,2\n1,3,4\n", ", header", "Unnamed: 0 a b", []string{"0", "1", "2"}},
		{"a header without the index", "a,b\nr1,1,2\nr2,3,4\n", ", header", "Unnamed: 0 a b", []string{"r1", "1", "2"}},
		{"a separator that is named", "sep=;\na;b\n1,5;2\n3;4\n", "; skip 1 header decimal ,", "a b", []string{"1.5", "2"}},
		{"thousands with units", "p,w,y\n\"1,234.5 EUR\",80 kg,0\n\"2,000.0 EUR\",75 kg,1\n", ", header thousands ,", "p w y", []string{"1234.5 EUR", "80 kg", "0"}},
		{"three digits after a comma", "a,y\n\"0,125\",1\n\"1,250\",0\n", ", header decimal ,", "a y", []string{"0.125", "1"}},
		{"three digits after each comma", "a;y\n3,125;1\n1,250;0\n", "; header decimal ,", "a y", []string{"3.125", "1"}},
		{"decimal commas with units", "w;p;y\n1,5 kg;EUR 3,2;0\n12,25 kg;EUR 4,9;1\n", "; header decimal ,", "w p y", []string{"1.5 kg", "EUR 3.2", "0"}},
		{"thousands of the Swiss", "p;y\n5'667.61;0\n900.5;1\n", "; header thousands '", "p y", []string{"5667.61", "0"}},
		{"thousands of the Swiss, printed", "p;y\n-5\u2019667;0\n900;1\n", "; header thousands \u2019", "p y", []string{"-5667", "0"}},
		{"thousands of the French", "p;y\n5\u202f667,61 €;0\n900,5 €;1\n", "; header decimal , thousands \u202f", "p y", []string{"5667.61", "0"}},
		{"thousands of the Swedes", "p,y\n5 667 kr,0\n900 kr,1\n", ", header thousands  ", "p y", []string{"5667 kr", "0"}},
		{"codes in two parts", "town,y\n110 001,0\n560 034,1\n", ", header", "town y", []string{"110 001", "0"}},
		{"accountants", "p,y\n\"(1,234.5)\",0\n($7.00),1\n\"$2,000.1\",1\n", ", header thousands ,", "p y", []string{"-1234.5", "0"}},
		{"a sign at the end", "p,y\n12.50-,0\n7.00,1\n", ", header", "p y", []string{"-12.50", "0"}},
		{"marks at school", "p,y\n2-,0\n1,1\n", ", header", "p y", []string{"2-", "0"}},
		{"minus signs of typesetters", "p,y\n\u221212.5,0\n\u2013$3,1\n", ", header", "p y", []string{"-12.5", "0"}},
		{"no numbers in parentheses", "p,y\n(a),0\n(),1\n(1-2),1\n", ", header", "p y", []string{"(a)", "0"}},
		{"separators at the ends", "a,b\n1,x,\n2,y,\n", ", header", "a b Unnamed: 2", []string{"1", "x", ""}},
		{"an empty field after an index", "a,b\nr1,1,\nr2,2,5\n", ", header", "Unnamed: 0 a b", []string{"r1", "1", ""}},
		{"names in two rows", "sensor,,state\nt,rh,\n1,2,hi\n3,4,lo\n5,6,hi\n", ", header of 2", "sensor.t rh state", []string{"1", "2", "hi"}},
		{"units below the names", "t,rh,state\ndegC,%,-\n1,2,hi\n3,4,lo\n", ", header of 2", "t.degC rh.% state.-", []string{"1", "2", "hi"}},
		{"a first row that lacks numbers", "t,rh,state\nNA,NA,hi\n1,2,hi\n3,4,lo\n", ", header", "t rh state", []string{"NA", "NA", "hi"}},
		{"words alone", "colour,size\nred,big\nblue,small\nred,small\n", ", header", "colour size", []string{"red", "big"}},
		{"words alone without a header", "red,big\nblue,small\nred,small\n", ",", "0 1", []string{"red", "big"}},
		{"numbers of the columns", "0,1,2\n5,6,7\n8,9,1\n", ", header", "0 1 2", []string{"5", "6", "7"}},
		{"missing values", "a,b\nNA,1\n?,2\n3,\n", ", header", "a b", []string{"NA", "1"}},
		{"a name twice", "a,a,b,\n1,2,3,\n4,5,6,\n", ", header", "a a.1 b Unnamed: 3", []string{"1", "2", "3", ""}},
		{"old Macs", "a,b\r1,2\r3,4\r", ", header", "a b", []string{"1", "2"}},
		{"Windows", "a,b\r\n1,2\r\n3,4\r\n", ", header", "a b", []string{"1", "2"}},
		{"line ends in a field", "a,b\n\"x\ny\",1\nz,2\n", ", header", "a b", []string{"x\ny", "1"}},
		{"a quote within a field", "a,b\n5\" pipe,1\nz,2\n", ", header", "a b", []string{"5\" pipe", "1"}},
		{"JSON lines", "{\"a\":1,\"b\":\"x\"}\n{\"b\":null,\"c\":{\"d\":true}}\n", "json", "a b c.d", []string{"1", "x", ""}},
		{"JSON array", " [\n{\"a\":1.50},{\"a\":-2}]", "json", "a", []string{"1.50"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab, err := New(strings.NewReader(c.text), Options{Sniff: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(tab.Options); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := strings.Join(tab.Columns, " "); got != c.columns {
				t.Errorf("columns %q, want %q", got, c.columns)
			}
			rows, err := read(t, tab)
			if err != nil || len(rows) == 0 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			if diff := cmp.Diff(c.first, rows[0]); diff != "" {
				t.Errorf("first row (-want +got):\n%s", diff)
			}
		})
	}
}

func describe(o Options) string {
	if o.Format == JSON {
		return "json"
	}
	words := map[rune]string{'\t': "tab", ' ': "blank"}
	text := words[o.Separator]
	if text == "" {
		text = string(o.Separator)
	}
	if o.Quote != '"' {
		text += " quote " + string(o.Quote)
	}
	if o.Comment != 0 {
		text += " comment " + string(o.Comment)
	}
	if o.Skip > 0 {
		text += fmt.Sprint(" skip ", o.Skip)
	}
	if o.Header {
		text += " header"
		if o.HeaderRows > 0 {
			text += fmt.Sprint(" of ", o.HeaderRows)
		}
	}
	if o.Encoding != "" {
		text += " " + o.Encoding
	}
	if o.Decimal != 0 {
		text += " decimal " + string(o.Decimal)
	}
	if o.Thousands != 0 {
		text += " thousands " + string(o.Thousands)
	}
	return text
}

// However a text is encoded and compressed, it is the same table.
func TestEncodings(t *testing.T) {
	const text = "größe,y\n1,a\n2,é\n"
	must := func(b []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var zipped, squeezed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(text))
	z.Close()
	s, _ := zstd.NewWriter(&squeezed)
	s.Write([]byte(text))
	s.Close()
	for name, b := range map[string][]byte{
		"UTF-8":                    []byte(text),
		"byte order mark":          []byte("\ufeff" + text),
		"UTF-16":                   must(utf16.UTF16(utf16.LittleEndian, utf16.UseBOM).NewEncoder().Bytes([]byte(text))),
		"UTF-16, big end first":    must(utf16.UTF16(utf16.BigEndian, utf16.UseBOM).NewEncoder().Bytes([]byte(text))),
		"UTF-16 without a mark":    must(utf16.UTF16(utf16.LittleEndian, utf16.IgnoreBOM).NewEncoder().Bytes([]byte(text))),
		"UTF-16BE without a mark":  must(utf16.UTF16(utf16.BigEndian, utf16.IgnoreBOM).NewEncoder().Bytes([]byte(text))),
		"Latin-1":                  must(charmap.Windows1252.NewEncoder().Bytes([]byte(text))),
		"gzip":                     zipped.Bytes(),
		"zstd":                     squeezed.Bytes(),
		"two compressed one after": append(append([]byte(nil), squeezed.Bytes()...), squeezed.Bytes()[:0]...),
	} {
		tab, err := New(bytes.NewReader(b), Options{Sniff: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rows, err := read(t, tab)
		if err != nil || tab.Columns[0] != "größe" || len(rows) != 2 || rows[1][1] != "é" {
			t.Errorf("%s: %v, columns %q, rows %q", name, err, tab.Columns, rows)
		}
		again, err := New(bytes.NewReader(b), Options{Dialect: tab.Options.Dialect})
		if err != nil {
			t.Errorf("%s: again: %v", name, err)
			continue
		}
		if more, err := read(t, again); err != nil || cmp.Diff(rows, more) != "" {
			t.Errorf("%s: read by what was found: %q, %v", name, more, err)
		}
	}
}

// What is not a table is said in a line, whatever its size.
func TestErrors(t *testing.T) {
	long := strings.Repeat("\x00\x01\xff", 1<<16)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "is empty; a table has rows"},
		{"empty lines", "\r\n\n \n", "is empty; a table has rows"},
		{"one column", "1\n2\n", "is not CSV of two columns"},
		{"ragged", "1,2\n3\n", "is not CSV of two columns"},
		{"a quote without its end", "\"a,b\n1,2\n", "is not CSV of two columns"},
		{"binary", "abc" + long, "is a binary file"},
		{"spreadsheet", "PK\x03\x04" + long, "is a zip archive"},
		{"image", "\x89PNG\r\n" + long, "is an image"},
		{"xz", "\xfd7zXZ\x00" + long, "is compressed with xz, not a table of text; decompress it: xz -d FILE"},
		{"lzma", "]\x00\x00\x80" + long, "is compressed with lzma"},
		{"compress", "\x1f\x9d\x90a,b\n1,2\n3,4\n", "is compressed with compress"},
		{"lz4", "\x04\x22\x4d\x18a,b\n1,2\n", "is compressed with lz4"},
		{"7z", "7z\xbc\xaf\x27\x1c" + long, "is a 7z archive"},
		{"rar", "Rar!\x1a\x07\x01" + long, "is a RAR archive"},
		{"tar", "data.csv" + strings.Repeat("\x00", 249) + "ustar\x0000" + long, "is a tar archive"},
		{"UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00,\x00\x00\x00b\x00\x00\x00", "is UTF-32"},
		{"cut gzip", "\x1f\x8b\x08", "cannot be decompressed"},
		{"JSON cut", `{"a":1}` + "\n" + `{"a":`, "is not JSON lines"},
		{"JSON values", `[{"a":1},2]`, "an object is wanted"},
	} {
		tab, err := New(strings.NewReader(c.text), Options{Sniff: true})
		if err == nil {
			_, err = read(t, tab)
		}
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %.400v; want %q", c.name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), Options{Sniff: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// The faults of a row have its line, and the rows after it are read.
func TestFaultyRow(t *testing.T) {
	tab, err := New(strings.NewReader("a,b\n\n1,\"2\nx\" 3\n4,5\n6,\xff\n"), Options{Dialect: Dialect{Header: true}})
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err = tab.Next(); !errors.As(err, &e) || e.Line != 4 || !e.Row {
		t.Errorf("a word after a quote: %v", err)
	}
	row, err := tab.Next()
	if err != nil || row.Fields[0] != "4" || row.Line(1) != 5 {
		t.Errorf("the row after: %+v, %v", row, err)
	}
	if _, err = tab.Next(); !errors.As(err, &e) || e.Line != 6 || e.Row || !strings.Contains(e.Error(), "latin1") {
		t.Errorf("not UTF-8: %v", err)
	}
}

// What encoding/csv accepts is the same here, but for the blanks around fields.
// A unit next to a number is not part of it; what is not a number stays as it is.
func TestUnits(t *testing.T) {
	german := numbersOf(Dialect{Decimal: ',', Thousands: '.'})
	english := numbersOf(Dialect{Thousands: ','})
	plain := numbersOf(Dialect{})
	for _, c := range []struct {
		number      func(string) string
		field, want string
	}{
		{plain, "$5", "5"}, {plain, "-$5.50", "-5.50"}, {plain, "12%", "12"}, {plain, "12.5 %", "12.5"}, {plain, "€ 3", "3"}, {plain, "7\u00a0€", "7"},
		{plain, "1e3", "1e3"}, {plain, "$", "$"}, {plain, "$$", "$$"}, {plain, "%", "%"}, {plain, "", ""}, {plain, "$a", "$a"}, {plain, "5%x", "5%x"},
		{plain, "-$-5", "-$-5"}, {plain, "$1,234", "$1,234"}, {plain, "-", "-"}, {plain, "$NaN", "$NaN"},
		{english, "$1,234.50", "1234.50"}, {english, "-$1,234,567", "-1234567"}, {english, "$12,34", "$12,34"},
		{german, "8.478,50 €", "8478.50"}, {german, "49,3 %", "49.3"}, {german, "8,478.50 €", "8,478.50 €"},
	} {
		if got := c.number(c.field); got != c.want {
			t.Errorf("%q: got %q, want %q", c.field, got, c.want)
		}
	}
}

// A table of prices and shares is one of numbers, whichever notation it has.
func TestSniffUnits(t *testing.T) {
	tab, err := New(strings.NewReader("price,share,y\n\"$7,663.78\",29.7%,a\n\"$1,200.00\",5%,b\n"), Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t, tab)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"7663.78", "29.7", "a"}, {"1200.00", "5", "b"}}
	if diff := cmp.Diff(want, got); diff != "" || strings.Join(tab.Columns, " ") != "price share y" {
		t.Errorf("columns %q (-want +got):\n%s", tab.Columns, diff)
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range []string{"", "a,b\n1,2\n", "\"a\"\"b\",c\r\n", "\"a\nb\",\n\n1,2", " \"a\" ,b", "a;b\n"} {
		f.Add(text, byte(','))
	}
	f.Fuzz(func(t *testing.T, text string, sep byte) {
		if !strings.ContainsRune(",;|", rune(sep)) {
			sep = ','
		}
		std := csv.NewReader(strings.NewReader(text))
		std.Comma, std.FieldsPerRecord, std.TrimLeadingSpace = rune(sep), -1, true
		want, stdErr := std.ReadAll()
		tab, err := New(strings.NewReader(text), Options{Dialect: Dialect{Separator: rune(sep)}})
		if err != nil {
			return
		}
		got, err := read(t, tab)
		isBlank := func(r rune) bool { return r != '\n' && unicode.IsSpace(r) }
		// What begins as UTF-16 does is read as that.
		if stdErr != nil || !utf8.ValidString(text) || strings.HasPrefix(text, "\ufeff") || strings.ContainsFunc(text, isBlank) || strings.Contains(text, "\x00") {
			return
		}
		for _, row := range want {
			if len(row) == 1 && row[0] == "" {
				return
			}
			for i := range row {
				row[i] = withoutUnit(row[i])
			}
		}
		if err != nil {
			var e *Error
			if errors.As(err, &e) && strings.Contains(e.Reason, "UTF-8") {
				return
			}
			t.Fatalf("%q: %v, but encoding/csv reads %q", text, err, want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-encoding/csv +got):\n%s", text, diff)
		}
	})
}

// Whatever a file holds, what is found out reads it without a panic.
func FuzzSniff(f *testing.F) {
	for _, text := range []string{"", "1,2\n", "a;b\n1;2\n", "\"", "\x1f\x8b", "a\tb\n1\t2", "{\"a\":1}", "[{\"a\":{\"b\":1}}]", "#a,b\n1,2", "PAR1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tab, err := New(strings.NewReader(text), Options{Sniff: true})
		if err != nil {
			return
		}
		for range 1000 {
			if _, err := tab.Next(); err != nil {
				return
			}
		}
	})
}

// TestSniffTies has as many rows of one length as of another: the first gives the
// width, and no row is taken for a title and left out.
func TestSniffTies(t *testing.T) {
	for _, text := range []string{"a,b,c,d,e\n1,2,3,4\n1,2,3,4,5,6\n", "a,b,c\n1,2,3,4\n"} {
		tab, err := New(strings.NewReader(text), Options{Sniff: true, Narrow: true})
		if err != nil || tab.Options.Skip > 0 || tab.Columns == nil {
			t.Errorf("%q: skips %d, %v", text, tab.Options.Skip, err)
		}
	}
}
