package dataset

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// photos writes a folder of images and a table of their labels.
func photos(t *testing.T, table string) (dir, labels string) {
	t.Helper()
	root := t.TempDir()
	for i, name := range []string{"a.png", "b.png", "sub/c.png", "d.png"} {
		to := red
		if i%2 == 1 {
			to = blue
		}
		write(t, root, "photos/"+name, pngOf(gradient(2, 2, red, to)))
	}
	return filepath.Join(root, "photos"), write(t, root, "labels.csv", []byte(table))
}

// Images in one folder have the labels that a table says, as classes or as numbers.
func TestImagesWithTable(t *testing.T) {
	o := Options{Format: FormatImages, Image: []int{2, 2, 3}, BatchSize: 4}
	dir, table := photos(t, "file,breed\nb.png,setter\na,husky\nsub/c.png,husky\nd.png,setter\n")
	o.LabelFile = table
	d := load(t, dir, o)
	if _, y := batch(t, d, 0); !slices.Equal(y, []int64{1, 0, 0, 1}) || !slices.Equal(d.ClassNames, []string{"husky", "setter"}) || d.Classes != 2 {
		t.Errorf("labels %v of %q", y, d.ClassNames)
	}
	s := sample(t, dir, table, AnyTask)
	if s.Format != FormatImages || s.LabelFile != table || s.Rows != 4 || s.Classes != 2 || s.Numbers || !slices.Equal(s.Image, []int{2, 2, 3}) || len(s.Features) != 2 {
		t.Errorf("%+v", s)
	}

	dir, table = photos(t, "a.png;1,5\nb.png;2,5\nsub/c.png;-1\nd.png;4\n")
	s = sample(t, dir, table, AnyTask)
	if !s.Numbers || s.Classes != 0 || len(s.Features) != 1 {
		t.Errorf("%+v", s)
	}
	o.LabelFile, o.Numbers = table, true
	d = load(t, dir, o)
	_, y, err := d.Batch(0)
	if err != nil {
		t.Fatal(err)
	}
	if got := math.Float32frombits(uint32(y.Data[0]) | uint32(y.Data[1])<<8 | uint32(y.Data[2])<<16 | uint32(y.Data[3])<<24); got != 1.5 {
		t.Errorf("the first label is %v, want 1.5", got)
	}
}

func TestImagesWithoutLabels(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.png", pngOf(gradient(2, 2, red, blue)))
	if _, err := NewSample(t.Context(), dir, "", AnyTask); err == nil || !strings.Contains(err.Error(), "has images, but no folder for each class; make these folders, or, if a table") {
		t.Errorf("images alone: %v", err)
	}
}

// A model is compared with the labels of a table.
func TestExamplesOfImagesWithTable(t *testing.T) {
	dir, table := photos(t, "class,name,id\nsetter,b.png,1\nhusky,a.png,2\nsetter,d.png,3\n")
	o := Options{Format: FormatImages, Image: []int{2, 2, 3}, LabelFile: table}
	d := load(t, dir, o)
	in, err := OpenExamples(t.Context(), dir, &d.Schema, ExamplesOptions{Labels: table, NeedLabel: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var got []float64
	if err := in.Each(func(e *Example) error { got = append(got, e.Label); return nil }); err != nil || !slices.Equal(got, []float64{1, 0, 1}) {
		t.Errorf("labels %v, %v", got, err)
	}
	unknown := write(t, t.TempDir(), "other.csv", []byte("name,class\na.png,poodle\nb.png,husky\n"))
	_, err = OpenExamples(t.Context(), dir, &d.Schema, ExamplesOptions{Labels: unknown, NeedLabel: true})
	if err == nil || !strings.Contains(err.Error(), `other.csv:2: the label "poodle" is not among those`) {
		t.Errorf("a label that is not known: %v", err)
	}
}

// TestImagesWithFoldersAbove: the table names the images by paths of another place, as that of the
// folder itself or of another machine.
func TestImagesWithFoldersAbove(t *testing.T) {
	for _, table := range []string{
		"path,class\ntrain/a.png,x\ntrain/b.png,y\ntrain/sub/c.png,x\ntrain/d.png,y\n",
		"/data/train/a.png,x\n/data/train/b.png,y\n/data/train/sub/c.png,x\n/data/train/d.png,y\n",
		"path,class\nC:\\train\\a,x\nC:\\train\\b,y\nC:\\train\\sub\\c,x\nC:\\train\\d,y\n",
	} {
		dir, name := photos(t, table)
		s, err := NewSample(t.Context(), dir, name, AnyTask)
		if err != nil || s.Rows != 4 || !slices.Equal(s.ClassNames, []string{"x", "y"}) {
			t.Errorf("%q: %+v, %v; want four images", table, s, err)
		}
	}
	dir, name := photos(t, "path,class\nx/a.png,x\ny/a.png,y\n")
	_, err := NewSample(t.Context(), dir, name, AnyTask)
	if err == nil || !strings.Contains(err.Error(), `labels.csv:3: "x/a.png" and "y/a.png" would be the same image`) {
		t.Errorf("two images of one name: %v", err)
	}
}

func TestImagesWithTableErrors(t *testing.T) {
	for _, c := range []struct {
		name, table string
		numbers     bool
		want        []string
	}{
		{"no image", "file,class\nx.png,k\ny.png,l\n", false, []string{"labels.csv:2: the row names no image in ", "give the folder that has the images"}},
		{"missing images", "file,class\na.png,x\nx.png,y\nb.png,y\ny.png,x\n", false, []string{`labels.csv:3: there is no image "x.png" in `, `labels.csv:5: there is no image "y.png" in `}},
		{"which column", "file,breed,age\na.png,x,1\nb.png,y,2\n", false, []string{"labels.csv: has several columns that may have the labels: ", "leave two"}},
		{"one class", "file,class\na.png,x\nb.png,x\n", false, []string{`labels.csv: every label is "x"; a classifier needs`}},
		{"no label", "file,class\na.png,x\nb.png,\n", false, []string{"labels.csv:3: the label is empty"}},
		{"no number", "file,class\na.png,1\nb.png,two\n", true, []string{`labels.csv:3: the label: "two" is not a number`}},
		{"no rows", "file,class\n", false, []string{"labels.csv: holds no rows"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, table := photos(t, c.table)
			wantError(t, dir, Options{Format: FormatImages, Image: []int{2, 2, 3}, LabelFile: table, Numbers: c.numbers}, c.want...)
		})
	}
}
