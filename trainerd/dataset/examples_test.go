package dataset

import (
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/tfevents/tfexample"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// carSchema is that of a file with the columns name, weight, origin, kind (the
// label) and built; name is not used.
func carSchema() *Schema {
	return &Schema{
		Format: FormatCSV, Columns: 5, Classes: 2,
		Features: []Feature{
			{Name: "weight", Kind: KindNumber, Column: 1}, {Name: "origin", Kind: KindCategory, Vocabulary: []string{"eu", "us"}, Column: 2},
			{Name: "built", Kind: KindDate, Column: 4},
		},
		Label: Feature{Name: "kind", Kind: KindCategory, Vocabulary: []string{"car", "van"}, Column: 3},
	}
}

// readExamples returns the rows, one string each.
func readExamples(t *testing.T, text string, s *Schema, o ExamplesOptions) (rows []string, err error) {
	t.Helper()
	o.In = strings.NewReader(text)
	e, err := OpenExamples(t.Context(), "in.csv", s, o)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	err = e.Each(func(one *Example) error {
		rows = append(rows, fmt.Sprint(one.X, one.Label))
		return nil
	})
	return rows, err
}

// TestExamplesOfTables reads the same rows in all ways in which they may come.
func TestExamplesOfTables(t *testing.T) {
	labelled := []string{"[1.5 1 2] 1", "[NaN -1 NaN] 0"}
	plain := []string{"[1.5 1 2] NaN", "[NaN -1 NaN] NaN"}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"as trained", "name,weight,origin,kind,built\na,1.5,us,van,1970-01-03\nb,,asia,car,\n", labelled},
		{"other order and columns", "built;kind;weight;more;origin\n1970-01-03;van;1.5;x;us\nNA;car;NA;y;\n", labelled},
		{"without the label", "origin\tweight\tbuilt\nus\t1.5\t1970-01-03\n\t?\t\n", plain},
		{"no header", "a,1.5,us,van,1970-01-03\nb,,asia,car,\n", labelled},
		{"no header, no label", "a,1.5,us,1970-01-03\nb,,asia,\n", plain},
		{"no header, features only", "1.5,us,1970-01-03\n,asia,\n", plain},
		{"JSON lines", `{"kind":"van","weight":1.5,"origin":"us","built":"1970-01-03"}` + "\n" + `{"kind":"car","weight":null,"origin":"asia","built":null}`, labelled},
		{"an unknown label", "name,weight,origin,kind,built\na,1.5,us,bus,1970-01-03\nb,,asia,,\n", plain},
	} {
		got, err := readExamples(t, tt.text, carSchema(), ExamplesOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestExamplesHeaders reads tables with the header of their training file: it means
// the same then, as do the numbers below it.
func TestExamplesHeaders(t *testing.T) {
	for _, text := range []string{
		"age,age,,age\n1,2,3,4\n5,6,7,8\n9,8,5,6\n",          // a repeated and an empty name
		"#age,size\n1,2\n3,4\n5,6\n",                         // a mark
		"(1),$2,50%,a\n1,2,3,4\n5,6,7,8\n",                   // names like numbers
		"age,size\nr1,1,2\nr2,3,4\nr3,5,6\n",                 // no name for those of the rows
		"in,in,out\na,b,a\n1,2,3\n4,5,6\n7,8,9\n",            // two rows
		"age;size\n1,5;2.000,5\n1.200,25;3,5\n2,5;1\n",       // decimal commas
		"\ufeff\"age\",\"size\"\n\"1\",\"2\"\n\"3\",\"4\"\n", // a byte order mark
	} {
		trained, err := table.New(strings.NewReader(text), table.Options{Sniff: true})
		if err != nil || !trained.Options.Header {
			t.Errorf("%q: header %v, %v", text, trained != nil && trained.Options.Header, err)
			continue
		}
		s := &Schema{Columns: len(trained.Columns)}
		for i, name := range trained.Columns {
			s.Features = append(s.Features, Feature{Name: name, Kind: KindCategory, Column: i})
		}
		var want []string
		for {
			row, err := trained.Next()
			if err != nil {
				break
			}
			x := make([]int, len(row.Fields))
			for i, field := range row.Fields {
				f := &s.Features[i]
				x[i], f.Vocabulary = len(f.Vocabulary), append(f.Vocabulary, field)
			}
			want = append(want, fmt.Sprint(x, " NaN"))
		}
		got, err := readExamples(t, text, s, ExamplesOptions{})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

// TestExamplesNotation reads numbers that may be two, as 1.234, as the training file
// wrote them, and others as they show it.
func TestExamplesNotation(t *testing.T) {
	german, english := Schema{Decimal: ',', Thousands: '.'}, Schema{Thousands: ','}
	for _, c := range []struct {
		schema     Schema
		text, want string
	}{
		{german, "w;v\n1.234;5\n", "[1234 5]"},
		{german, "w;v\n1,234;5\n", "[1.234 5]"},
		{german, "w\n1.234\n", "[1234]"},
		{german, "w;v\n1.5;2.25\n", "[1.5 2.25]"},
		{english, "w;v\n1,234;5\n", "[1234 5]"},
		{english, "w,v\n1.234,5\n", "[1.234 5]"},
		{Schema{}, "w;v\n1.234;5\n", "[1.234 5]"},
	} {
		for i, name := range strings.FieldsFunc(c.text[:strings.Index(c.text, "\n")], func(r rune) bool { return r == ';' || r == ',' }) {
			c.schema.Features = append(c.schema.Features, Feature{Name: name, Kind: KindNumber, Column: i})
		}
		got, err := readExamples(t, c.text, &c.schema, ExamplesOptions{})
		if want := []string{c.want + " NaN"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v %q: %q, %v; want %q", c.schema, c.text, got, err, want)
		}
	}
}

func TestExamplesErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		opts       ExamplesOptions
		want       []string
	}{
		{"a missing column", "name,weight,kind,built\na,1.5,van,1970-01-03\nb,1,car,\n", ExamplesOptions{}, []string{
			`in.csv:1: the column "origin" is missing, which the model was trained with; there are "name", "weight", "kind", "built"; add it; a field of a column that is not known may be empty`}},
		{"words in numbers", "weight,origin,built\nheavy,us,\n1,us,soon\n2,us,\n", ExamplesOptions{}, []string{
			`in.csv:2: column 1 ("weight"): "heavy" is not a number; features are numbers with a decimal point, such as -1.5e3`,
			`in.csv:3: column 3 ("built"): "soon" is not a date; write dates like 2026-11-25`}},
		{"too many fields", "weight,origin,built\n1,us,\n1,us,,\n", ExamplesOptions{}, []string{
			`in.csv:3: the row has 4 columns, but the first row has 3; make all rows equally long`}},
		{"too few fields", "weight,origin,built\n1,us,1970-01-03\n1,us\n", ExamplesOptions{NoMissing: true}, []string{
			`in.csv:3: the row has 2 columns, but the first row has 3; make all rows equally long`}},
		{"other columns without a header", "1,us\n2,eu\n", ExamplesOptions{}, []string{
			`in.csv:1: has rows of 2 columns, but the model takes 3 features; give a header with the columns' names`}},
		{"missing numbers", "weight,origin,built\n,us,1970-01-03\n1,,1970-01-03\n", ExamplesOptions{NoMissing: true}, []string{
			`in.csv:2: column 1 ("weight"): the field is empty; fill it in: the model was trained without missing numbers, and without normalize, which would fill in the mean`}},
		{"no label", "weight,origin,built\n1,us,\n", ExamplesOptions{NeedLabel: true}, []string{
			`in.csv: has no labels; add the column "kind", with which the predictions are compared`}},
		{"an unknown label", "weight,origin,built,kind\n1,us,,bus\n", ExamplesOptions{NeedLabel: true}, []string{
			`in.csv:2: column 4 ("kind"): the label "bus" is not a class of the model; correct the label, or remove the row`}},
		{"rows of all lengths", "weight,origin,built,kind,name\n1,us,1970-01-03,car\n1,us,1970-01-03,car,a,b\n", ExamplesOptions{}, []string{
			`in.csv:3: the row has 6 columns, but the first row has 5; make all rows equally long`}},
		{"nothing", "", ExamplesOptions{}, []string{`in.csv: holds no rows`}},
	} {
		_, err := readExamples(t, tt.text, carSchema(), tt.opts)
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestExamplesOfFiles reads what was loaded for training: the rows are the same.
func TestExamplesOfFiles(t *testing.T) {
	dir := t.TempDir()
	one := records(example{"label": tfexample.Int64s(1), "b": tfexample.Floats(2, 3), "a": tfexample.Int64s(1)},
		example{"label": tfexample.Int64s(0), "b": tfexample.Floats(5, 6), "a": tfexample.Int64s(4)})
	unlabelled := write(t, dir, "unlabelled", records(example{"b": tfexample.Floats(2, 3), "a": tfexample.Int64s(1)}))
	write(t, dir, "labels-idx1", idx(idxUint8, []int{2}, 1, 0))
	images := filepath.Join(dir, "images")
	for name, m := range map[string]image.Image{"a/1.png": gradient(4, 4, black, white), "b/1.png": gradient(4, 4, white, black)} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(images, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, images, name, pngOf(m))
	}
	for name, o := range map[string]Options{
		write(t, dir, "rows.csv", []byte("0,1,2\n1,3,4\n0,5,6\n")):                          {},
		write(t, dir, "rows.tfrecord", one):                                                 {Format: FormatTFRecord},
		write(t, dir, "images-idx3", idx(idxUint8, []int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)): {Format: FormatIDX},
		images: {Format: FormatImages, Image: []int{4, 4, 1}},
	} {
		d := load(t, name, o)
		e, err := OpenExamples(t.Context(), name, &d.Schema, ExamplesOptions{NeedLabel: true})
		if err != nil {
			t.Fatal(err)
		}
		row := int64(0)
		err = e.Each(func(one *Example) error {
			x, y := batch(t, d, row)
			row++
			if !slices.Equal(x, one.X) || y[0] != int64(one.Label) {
				t.Errorf("%s: row %d is %v, %v; want %v, %v", name, row, one.X, one.Label, x, y)
			}
			return nil
		})
		if err != nil || row != int64(d.TrainRows) || !e.HasLabels {
			t.Errorf("%s: %d rows, %v", name, row, err)
		}
		e.Close()
	}
	d := load(t, filepath.Join(dir, "rows.tfrecord"), Options{Format: FormatTFRecord})
	e, err := OpenExamples(t.Context(), unlabelled, &d.Schema, ExamplesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	err = e.Each(func(one *Example) error {
		if !math.IsNaN(one.Label) || !slices.Equal(one.X, []float32{1, 2, 3}) {
			t.Errorf("without a label: %v, %v", one.X, one.Label)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSchemaJSON stores schemas, those of images as a count.
func TestSchemaJSON(t *testing.T) {
	wide := &Schema{Format: FormatIDX, Image: []int{28, 28, 1}, Features: make([]Feature, 784), Label: Feature{Kind: KindCategory}}
	for i := range wide.Features {
		wide.Features[i] = Feature{Kind: KindNumber, Column: i}
	}
	for _, s := range []*Schema{wide, carSchema()} {
		text, err := s.MarshalJSON()
		if err != nil || len(text) > 600 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		got := new(Schema)
		if err := got.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Error(diff)
		}
	}
}
