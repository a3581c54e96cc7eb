package dataset

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/picture"
)

// isGrey reports whether an image has no colours.
func isGrey(c picture.Config) bool { return c.Channels < 3 }

// sampleArrays reads files of arrays: the examples, and the labels next to them.
func sampleArrays(ctx context.Context, format Format, name, labels string, task Task) (*Sample, error) {
	name, err := examplesOf(name)
	if err != nil {
		return nil, err
	}
	x, err := readArray(ctx, name, DefaultMemoryLimit)
	if err != nil {
		return nil, err
	}
	if len(x.shape) < 2 {
		return nil, &Error{File: name, Reason: fmt.Sprintf("has the shape %v, which is that of labels", x.shape), Hint: "give the file with the examples, and this one with --label"}
	}
	s := &Sample{Format: format, File: name, Rows: x.shape[0], Bytes: x.isBytes()}
	if labels, err = labelsOf(ctx, name, labels, x.shape[0]); err != nil {
		return nil, err
	}
	s.LabelFile = labels
	y, err := readArray(ctx, labels, DefaultMemoryLimit)
	if err != nil {
		return nil, err
	}
	if err := s.arrayLabels(y, task); err != nil {
		return nil, err
	}
	switch {
	case len(x.shape) == 3:
		s.Image = []int{x.shape[1], x.shape[2], 1}
	case len(x.shape) == 4 && (x.shape[3] == 1 || x.shape[3] == 3):
		s.Image = x.shape[1:]
	}
	kinds := map[bool]string{true: "bytes", false: "numbers"}
	s.Features = []SampleFeature{
		{Name: filepath.Base(name), Kind: kinds[s.Bytes], Shape: shapeText(x.shape[1:]), Example: fmt.Sprint(x.at(0)), Rule: "an example each"},
		{Name: filepath.Base(labels), Kind: kinds[y.isBytes()], Shape: "1", Example: fmt.Sprint(y.at(0)), Rule: s.labelRule()},
	}
	s.findArrayTest()
	return s, nil
}

func shapeText(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", " x "), "[]")
}

func (s *Sample) labelRule() string {
	if s.Numbers {
		return "label: a number"
	}
	return fmt.Sprintf("label: %d classes", s.Classes)
}

// arrayLabels finds out what labels are: classes, if they are whole numbers from 0
// up that occur only a few times.
func (s *Sample) arrayLabels(y *array, task Task) error {
	if !y.isList() || y.shape[0] != s.Rows {
		hint := "name the file with the labels with --label"
		if len(y.shape) == 2 && y.shape[0] == s.Rows {
			hint = "of one-hot labels store the classes, as numpy.argmax(y, axis=1) gives them; a model predicts one number"
		}
		return &Error{File: s.LabelFile, Reason: fmt.Sprintf("has the shape %v; want one label for each of the %d examples", y.shape, s.Rows), Hint: hint}
	}
	if task == AnyTask && y.isMeasured() {
		task = Regression
	}
	all := make([]float64, s.Rows)
	for i := range all {
		all[i] = y.at(i)
	}
	return s.classify(all, task, s.LabelFile)
}

// classify decides whether labels are classes.
func (s *Sample) classify(labels []float64, task Task, place string) error {
	whole, top := true, 0.0
	distinct := make(map[float64]bool)
	for _, v := range labels {
		whole = whole && v == math.Trunc(v) && v >= 0 && v <= math.MaxInt32
		top = max(top, v)
		if len(distinct) <= maxClasses {
			distinct[v] = true
		}
	}
	if len(distinct) < 2 {
		return &Error{File: place, Reason: "every label is the same", Hint: "check that they are the labels"}
	}
	const few = 20
	filled := len(distinct) <= few || 4*len(distinct) >= 3*int(top) // nearly every number up to the largest is a label
	classes := whole && top <= maxClasses && 2*len(distinct) <= len(labels) && filled
	s.Numbers = task == Regression || task == AnyTask && !classes
	if !s.Numbers && !whole {
		return &Error{File: place, Reason: "the labels are not whole numbers from 0 up, so no classes", Hint: "use --task regression"}
	}
	if !s.Numbers {
		s.Classes = int(top) + 1
	}
	return nil
}

// labelsOf returns the file with the labels of arrays, which may be given as an array of the archive with the examples.
func labelsOf(ctx context.Context, name, labels string, rows int) (string, error) {
	if labels == "" {
		return findLabels(ctx, name, rows)
	}
	if archive, _, ok := archiveOf(name); ok && !isFile(labels) && isFile(filepath.Join(archive, labels)) {
		return filepath.Join(archive, labels), nil
	}
	return labels, nil
}

// findLabels returns the file with the labels of arrays: the one whose name
// belongs to theirs, else the only one in the folder or archive with so many labels.
func findLabels(ctx context.Context, name string, rows int) (string, error) {
	if labels, err := labelsBeside(name); err == nil && isFile(labels) {
		return labels, nil
	}
	found, where, err := listsBeside(ctx, name, rows)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", &Error{File: name, Reason: fmt.Sprintf("%d %s next to it have %d labels", len(found), where, rows), Hint: "name the file with the labels with --label"}
	}
	return found[0], nil
}

// listsBeside returns the files next to one that have a number for each row, or the arrays of its archive.
func listsBeside(ctx context.Context, name string, rows int) (found []string, where string, err error) {
	if archive, member, ok := archiveOf(name); ok {
		names, err := arraysIn(archive, func(i ckptfmt.TensorInfo) bool {
			list := len(i.Shape) == 1 || len(i.Shape) == 2 && i.Shape[1] == 1
			return i.Name != member && list && i.Shape[0] == int64(rows)
		})
		for _, n := range names {
			found = append(found, filepath.Join(archive, filepath.FromSlash(n)))
		}
		return found, "arrays", err
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return nil, "", openError(filepath.Dir(name), err)
	}
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(name), e.Name())
		if format, err := DetectFormat(path); err != nil || !format.isArrays() || e.Name() == filepath.Base(name) {
			continue
		}
		if y, err := readArray(ctx, path, DefaultMemoryLimit); err == nil && y.isList() && y.shape[0] == rows {
			found = append(found, path)
		}
	}
	return found, "files", nil
}

// findArrayTest finds the test part that the names announce, as MNIST's do.
func (s *Sample) findArrayTest() {
	for _, test := range append([]string{"t10k"}, testWords...) {
		x, y := partBeside(s.File, test), partBeside(s.LabelFile, test)
		if x != "" && y != "" {
			s.TestFile, s.TestLabelFile = x, y
			return
		}
	}
}
