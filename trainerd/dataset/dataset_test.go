package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"github.com/trainerd/trainerd/ckptfmt"
)

// numbered is a file of n rows whose single feature is the row's number and
// whose label is that number modulo classes.
func numbered(n, classes int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,%d\n", i, i%classes)
	}
	return b.String()
}

func read(t *testing.T, text string, o Options) *Dataset {
	t.Helper()
	d, err := Read(t.Context(), strings.NewReader(text), "data.csv", o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func floats(x *ckptfmt.Tensor) []float32 {
	v := make([]float32, len(x.Data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(x.Data[4*i:]))
	}
	return v
}

func ints(y *ckptfmt.Tensor) []int64 {
	v := make([]int64, len(y.Data)/8)
	for i := range v {
		v[i] = int64(binary.LittleEndian.Uint64(y.Data[8*i:]))
	}
	return v
}

func TestRead(t *testing.T) {
	tests := []struct {
		name    string
		text    string
		opts    Options
		x       []float32 // all rows, in the file's order
		y       []int64
		columns []string
		classes int
	}{
		{
			name: "label first", text: "1,10,20\n0,30,40\n",
			x: []float32{10, 20, 30, 40}, y: []int64{1, 0}, classes: 2,
		},
		{
			name: "label last, counted from the end", text: "10,20,1\n30,40,2\n5,6,0\n", opts: Options{Label: Column{Index: -1}},
			x: []float32{10, 20, 30, 40, 5, 6}, y: []int64{1, 2, 0}, classes: 3,
		},
		{
			name: "header, label in the middle by name", text: "a, class ,b\n1.5,0,-2e3\n.25,1,+7\n",
			opts: Options{Header: true, Label: Column{Name: "class"}},
			x:    []float32{1.5, -2000, .25, 7}, y: []int64{0, 1}, columns: []string{"a", "b"}, classes: 2,
		},
		{
			name: "more classes than occur", text: "1,5\n0,6\n", opts: Options{Classes: 10},
			x: []float32{5, 6}, y: []int64{1, 0}, classes: 10,
		},
		{
			name: "quotes, spaces, CRLF, blank lines, byte order mark, no final newline", text: "\xef\xbb\xbf1, \"10\",20\r\n\r\n0,\t30, 40 ",
			x: []float32{10, 20, 30, 40}, y: []int64{1, 0}, classes: 2,
		},
		{
			name: "tabs", text: "1\t10\n0\t20\n", opts: Options{Comma: '\t'},
			x: []float32{10, 20}, y: []int64{1, 0}, classes: 2,
		},
		{
			name: "scale", text: "1,8\n0,16\n", opts: Options{Scale: 16},
			x: []float32{.5, 1}, y: []int64{1, 0}, classes: 2,
		},
		{
			name: "minmax with a constant column", text: "1,8,3\n0,16,3\n0,10,3\n", opts: Options{Normalize: NormalizeMinMax},
			x: []float32{0, 0, 1, 0, .25, 0}, y: []int64{1, 0, 0}, classes: 2,
		},
		{
			name: "standard with a constant column", text: "1,2,3\n0,6,3\n", opts: Options{Normalize: NormalizeStandard},
			x: []float32{-1, 0, 1, 0}, y: []int64{1, 0}, classes: 2,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.BatchSize = len(tt.y)
			check := func(d *Dataset) {
				t.Helper()
				x, y, _ := d.Batch(0)
				if diff := cmp.Diff(tt.x, floats(x)); diff != "" {
					t.Errorf("features (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.y, ints(y)); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				wantShape := []int64{int64(len(tt.y)), int64(len(tt.x) / len(tt.y))}
				if diff := cmp.Diff(wantShape, x.Shape); diff != "" {
					t.Errorf("shape (-want +got):\n%s", diff)
				}
				if d.Classes != tt.classes || d.TrainRows != len(tt.y) || d.TestRows != 0 {
					t.Errorf("got %d classes, %d+%d rows, want %d, %d+0", d.Classes, d.TrainRows, d.TestRows, tt.classes, len(tt.y))
				}
				if diff := cmp.Diff(tt.columns, d.Columns); diff != "" {
					t.Errorf("columns (-want +got):\n%s", diff)
				}
			}
			check(read(t, tt.text, tt.opts))
			check(read(t, zipped(tt.text), tt.opts)) // the same, known by its content
		})
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func TestReadErrors(t *testing.T) {
	z := zipped(numbered(500, 3))
	tests := []struct {
		name string
		text string
		opts Options
		want []string // lines of the error
	}{
		{name: "empty", text: "", want: []string{
			"data.csv: holds no rows; training needs at least two"}},
		{name: "header alone", text: "a,b\n", opts: Options{Header: true}, want: []string{
			"data.csv: holds no rows; training needs at least two"}},
		{name: "one row", text: "1,2\n", opts: Options{Classes: 2}, want: []string{
			"data.csv: holds a single row; training needs at least two"}},
		{name: "one column", text: "1\n2\n", want: []string{
			"data.csv:1: has a single column; a row needs a label and at least one feature, separated by ','; check data.separator"}},
		{name: "label index too great", text: "1,2\n", opts: Options{Label: Column{Index: 2}}, want: []string{
			"data.csv:1: there is no column 2 for the label; the 2 columns are 0 to 1, or -2 to -1 from the end; set data.label to one of them"}},
		{name: "label index too small", text: "1,2\n", opts: Options{Label: Column{Index: -3}}, want: []string{
			"data.csv:1: there is no column -3 for the label; the 2 columns are 0 to 1, or -2 to -1 from the end; set data.label to one of them"}},
		{name: "label name unknown", text: "\na,b,digit\n1,2,0\n", opts: Options{Header: true, Label: Column{Name: "label"}}, want: []string{
			`data.csv:2: there is no column "label" for the label; the columns are "a", "b", "digit"; set data.label to one of them`}},
		{name: "label name without a header", text: "1,2\n", opts: Options{Label: Column{Name: "y"}}, want: []string{
			`data.csv:1: the label column "y" is given by name, but the file is read without a header; set data.header = true, ` +
				`or data.label to an index: the 2 columns are 0 to 1, or -2 to -1 from the end`}},
		{name: "many columns, none of them right", text: strings.Join(names(40), ","), opts: Options{Header: true, Label: Column{Name: "y"}}, want: []string{
			`"c18", "c19", ... 17 more ..., "c37", "c38", "c39"; set data.label to one of them`}},
		{name: "long field", text: "0," + strings.Repeat("é", 50) + "\n1,2\n", opts: Options{}, want: []string{
			`data.csv:1: column 2: "` + strings.Repeat("é", 20) + `"... is not a number; if the first row holds column names, set data.header = true`}},
		{name: "ragged", text: "0,1,2\n1,2\n1,2,3,4\n", want: []string{
			"data.csv:2: the row has 2 columns, but the first row has 3; make all rows equally long, or set data.missing = \"fill\", which takes the fields at its end for missing",
			"data.csv:3: the row has 4 columns, but the first row has 3; make all rows equally long"}},
		{name: "header not expected", text: "label,x\n0,1\n", want: []string{
			`data.csv:1: column 1: the label "label" is not an integer; if the first row holds column names, set data.header = true`,
			`data.csv:1: column 2: "x" is not a number; if the first row holds column names, set data.header = true`}},
		{name: "not a number", text: "label,x\n0,1\n1,2;3\n", opts: Options{Header: true}, want: []string{
			`data.csv:3: column 2 ("x"): "2;3" is not a number; features are numbers with a decimal point, such as -1.5e3`}},
		{name: "not finite", text: "0,NaN\n1,-inf\n", want: []string{
			`data.csv:1: column 2: "NaN" is not a finite number; fill in a number or remove the row`,
			`data.csv:2: column 2: "-inf" is not a finite number; fill in a number or remove the row`}},
		{name: "empty field and overflow", text: "0,\n1,1e39\n", want: []string{
			`data.csv:1: column 2: the field is empty; fill in a value, remove the row, or set data.missing = "fill"`,
			`data.csv:2: column 2: "1e39" is beyond the range of a float32; scale the column before`}},
		{name: "labels", text: "0,1\n1.5,2\n-1,3\n7,4\n", opts: Options{Classes: 3}, want: []string{
			`data.csv:2: column 1: the label "1.5" is not an integer; labels are the classes' numbers, from 0 up; for words, add data.categories = ["0"]`,
			`data.csv:3: column 1: the label -1 is negative; number the classes from 0 up`,
			`data.csv:4: column 1: the label 7 is out of range: model.classes = 3 allows 0 to 2; correct the label or model.classes`}},
		{name: "one class", text: "0,1\n0,2\n", want: []string{
			`data.csv: column 1: every label is 0; a classifier needs at least two classes; check that data.label is the right column`}},
		{name: "absurd class", text: "0,1\n1000000,2\n", want: []string{
			`data.csv: column 1: the greatest label is 1000000, but there are only 2 rows; check that data.label is the right column; if it is, set model.classes`}},
		{name: "quote", text: "0,1\n0,\"2\n", want: []string{
			`data.csv:2: is not CSV: a quote is opened and never closed; write a quote inside a quoted field twice, and close every quote`}},
		{name: "cut gzip", text: z[:len(z)/2], want: []string{
			`cannot be read to the end: unexpected EOF; it may be cut short or damaged; get it again`}},
		{name: "gzip header alone", text: "\x1f\x8b\x08", want: []string{
			`data.csv: is compressed, but cannot be decompressed: unexpected EOF; the file is damaged; get it again`}},
		{name: "all rows for testing", text: numbered(4, 2), opts: Options{Label: Column{Index: 1}, TestFraction: .9}, want: []string{
			`data.csv: 4 of the 4 rows would be for testing and none for training; lower data.test_rows or data.test_fraction`}},
		{name: "scale to infinity", text: "0,1e30,2\n1,1,2\n", opts: Options{Scale: 1e-30}, want: []string{
			`data.csv: column 2: scaling makes 1e+30 infinite; check data.scale`}},
		{name: "unknown normalisation", text: "0,1\n1,1\n", opts: Options{Normalize: "z"}, want: []string{
			`data.csv: the normalisation "z" does not exist; use "standard", "minmax" or ""`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(t.Context(), strings.NewReader(tt.text), "data.csv", tt.opts)
			if err == nil {
				t.Fatal("no error")
			}
			if e := new(Error); !errors.As(err, &e) || e.File != "data.csv" {
				t.Errorf("the error %T holds no *Error of the file", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got\n%v\nwant\n%s", err, strings.Join(tt.want, "\n"))
			}
			for i, want := range tt.want {
				if !strings.HasSuffix(lines[i], want) {
					t.Errorf("got  %s\nwant %s", lines[i], want)
				}
			}
		})
	}
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("c%d", i)
	}
	return all
}

func TestManyErrors(t *testing.T) {
	_, err := Read(t.Context(), strings.NewReader("0,1\n"+strings.Repeat("0,x\n", 25)), "data.csv", Options{})
	var all *Errors
	if !errors.As(err, &all) || len(all.Problems) != 10 || all.More != 15 {
		t.Fatalf("got %v, want 10 problems and 15 more", err)
	}
	if want := "data.csv: 15 more problems like these"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the message ends in\n%s\nwant %s", err, want)
	}
}

// TestReadFails lets the file fail at every byte.
func TestReadFails(t *testing.T) {
	text := "a,b\n" + numbered(5, 2)
	broken := errors.New("disk on fire")
	for n := range len(text) {
		_, err := Read(t.Context(), io.MultiReader(strings.NewReader(text[:n]), iotest.ErrReader(broken)), "data.csv", Options{Header: true})
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, broken) {
			t.Errorf("failure at byte %d: %v", n, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "data.csv") // compressed in spite of its name
	if err := os.WriteFile(name, []byte(zipped(numbered(10, 2))), 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := Load(t.Context(), name, Options{Label: Column{Index: 1}})
	if err != nil || d.TrainRows != 10 || d.Features != 1 {
		t.Fatalf("got %+v, %v", d, err)
	}
	_, err = Load(t.Context(), filepath.Join(dir, "none.csv"), Options{})
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err = Load(t.Context(), dir, Options{}); !errors.As(err, &e) {
		t.Errorf("a folder: %v", err)
	}
}

func TestSplit(t *testing.T) {
	tests := []struct {
		name        string
		opts        Options
		train, test int
	}{
		{"none", Options{}, 50, 0},
		{"fraction", Options{TestFraction: .25}, 37, 13},
		{"count", Options{TestRows: 7, TestFraction: .9}, 43, 7},
		{"shuffled", Options{TestFraction: .2, Shuffle: true, Seed: 3}, 40, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Label.Index = 1
			tt.opts.BatchSize = tt.train
			d := read(t, numbered(50, 5), tt.opts)
			if d.TrainRows != tt.train || d.TestRows != tt.test {
				t.Fatalf("got %d+%d rows, want %d+%d", d.TrainRows, d.TestRows, tt.train, tt.test)
			}
			x, y, _ := d.Batch(0)
			tx, ty, _ := d.Test(0, 50)
			all := append(floats(x), floats(tx)...)
			labels := append(ints(y), ints(ty)...)
			for i, v := range all {
				if labels[i] != int64(v)%5 {
					t.Errorf("row %v has label %d", v, labels[i])
				}
			}
			ordered := slices.IsSorted(all)
			if ordered == tt.opts.Shuffle {
				t.Errorf("in file order: %v", ordered)
			}
			slices.Sort(all)
			for i, v := range all {
				if int(v) != i {
					t.Fatalf("rows %v, want each of 0..49 once", all)
				}
			}
		})
	}
}

func TestTestRange(t *testing.T) {
	d := read(t, numbered(10, 2), Options{Label: Column{Index: 1}, TestRows: 4})
	tests := []struct {
		start, limit int
		want         []float32
	}{
		{0, 3, []float32{6, 7, 8}},
		{3, 3, []float32{9}},
		{4, 3, []float32{}},
		{-1, 1, []float32{6}},
		{2, math.MaxInt, []float32{8, 9}},
		{0, -1, []float32{}},
	}
	for _, tt := range tests {
		x, y, _ := d.Test(tt.start, tt.limit)
		if diff := cmp.Diff(tt.want, floats(x)); diff != "" || x.Shape[0] != int64(len(tt.want)) || y.Shape[0] != x.Shape[0] {
			t.Errorf("Test(%d, %d), shapes %v and %v: (-want +got)\n%s", tt.start, tt.limit, x.Shape, y.Shape, diff)
		}
	}
}

// TestNormalizeUnseen makes sure that the test rows do not take part in the
// statistics.
func TestNormalizeUnseen(t *testing.T) {
	text := "0,0\n1,10\n0,1000\n"
	for _, tt := range []struct {
		how  Normalize
		want float32
	}{{NormalizeMinMax, 100}, {NormalizeStandard, 199}} {
		d := read(t, text, Options{TestRows: 1, Normalize: tt.how})
		x, _, _ := d.Test(0, 1)
		if got := floats(x)[0]; got != tt.want {
			t.Errorf("%s: the test row became %v, want %v", tt.how, got, tt.want)
		}
	}
}
