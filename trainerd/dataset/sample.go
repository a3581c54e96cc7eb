package dataset

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sample describes data that are not a table, for code that writes a job for
// them: arrays, TFRecord files or folders of images.
type Sample struct {
	Format Format
	// File is the data to train with: for a folder with parts, one of them.
	File string
	// Rows counts the examples.
	Rows int
	// Features are those of tf.Example messages; other data have one.
	Features []SampleFeature
	// Label is the feature of tf.Example messages to predict.
	Label string
	// LabelFile has the labels of arrays, or of images in one folder; TestFile and TestLabelFile are a test
	// part that was found next to the data. "" for none.
	LabelFile, TestFile, TestLabelFile string
	// Numbers says that the label is a number, not a class.
	Numbers bool
	// Classes is the number of classes, 0 if that was not counted.
	Classes int
	// ClassNames are those of folders.
	ClassNames []string
	// Image is the size of the images, or the best size to resize them to; nil
	// for other data.
	Image []int
	// Bytes says that the features are bytes, from 0 to 255.
	Bytes bool
	// Note says which part of the data is left out; "" for none.
	Note string
}

// SampleFeature describes a feature.
type SampleFeature struct {
	Name string
	// Kind is "floats", "integers", "bytes", "image" or "images".
	Kind string
	// Shape says how many there are in an example.
	Shape string
	// Example is the first, shortened.
	Example string
	// Drop says that it is not used; Rule says what is done with it, and why.
	Drop bool
	Rule string
}

// Used returns the names of the features to learn from.
func (s *Sample) Used() (names []string) {
	for _, f := range s.Features {
		if !f.Drop && f.Name != s.Label {
			names = append(names, f.Name)
		}
	}
	return names
}

// NewSample examines data, until ctx is done; it returns nil for a table. label is the feature
// of tf.Example messages to predict, or the file with the labels of arrays, or of images in one folder; "" to choose one.
func NewSample(ctx context.Context, name, label string, task Task) (*Sample, error) {
	format, err := DetectFormat(name)
	if err != nil {
		return nil, err
	}
	switch format {
	case FormatIDX, FormatNumPy:
		return sampleArrays(ctx, format, name, label, task)
	case FormatTFRecord:
		return sampleRecords(ctx, name, label, task)
	case FormatImages:
		return sampleImages(ctx, name, label, task)
	}
	return nil, nil
}

// DetectFormat returns the format of data that are not a table, by their
// contents; "" for a file that may be a table.
func DetectFormat(name string) (Format, error) {
	if _, err := os.Stat(name); err != nil && strings.ContainsAny(name, "*?[") {
		files, err := matching(name)
		if err != nil {
			return "", err
		}
		name = files[0]
	}
	if _, _, ok := archiveOf(name); ok {
		return FormatNumPy, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", openError(name, err)
	}
	if info.IsDir() || isImage(name) {
		return FormatImages, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", openError(name, err)
	}
	defer f.Close()
	plain, err := decompress(f)
	if err != nil {
		return "", nil // a table may be compressed in other ways
	}
	var head [12]byte
	n, _ := io.ReadFull(plain, head[:])
	switch {
	case isIDX(head[:n]):
		return FormatIDX, nil
	case strings.HasPrefix(string(head[:n]), numpyMagic):
		return FormatNumPy, nil
	case n == 12 && isRecord(head):
		return FormatTFRecord, nil
	case isArchive(name, head[:n]):
		return FormatNumPy, nil
	}
	return "", nil
}

// partNames are names of folders with the parts of data: pairs of training and
// test.
var partNames = [][2]string{{"train", "test"}, {"train", "val"}, {"train", "valid"}, {"train", "validation"}, {"training", "test"}, {"training", "testing"}, {"training", "validation"}}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// imageParts returns the folders to train and to test with.
func imageParts(dir string) (train, test string) {
	for _, p := range partNames {
		train, test = filepath.Join(dir, p[0]), filepath.Join(dir, p[1])
		if isDir(train) && isDir(test) {
			return train, test
		}
		beside := filepath.Join(filepath.Dir(dir), p[1])
		if filepath.Base(dir) == p[0] && isDir(beside) {
			return dir, beside
		}
	}
	return dir, ""
}

// otherParts returns a note about parts of the data next to the test part, which are not
// used; "" for none.
func otherParts(test string) string {
	if test == "" {
		return ""
	}
	var others []string
	for _, p := range partNames {
		other := filepath.Join(filepath.Dir(test), p[1])
		if p[1] != filepath.Base(test) && isDir(other) && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("not used: %s; to test with another part than %s, name it in data.test_file", strings.Join(others, ", "), test)
}

// joinNotes joins those of some notes that are not empty.
func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

// sampleImages looks at the heads of the images in folders, or of those that a table of labels
// names.
func sampleImages(ctx context.Context, dir, labelFile string, task Task) (*Sample, error) {
	if isImage(dir) {
		return nil, &Error{File: dir, Reason: "is a single image", Hint: "give the folder that has a folder of images for each class"}
	}
	if labelFile != "" {
		return sampleLabelled(ctx, dir, labelFile, task)
	}
	train, test := imageParts(dir)
	r := new(imageRows)
	names, err := r.list(ctx, train, nil)
	if err != nil {
		return nil, err
	}
	s := &Sample{Format: FormatImages, File: train, TestFile: test, Note: joinNotes(r.found.note(), otherParts(test))}
	return s, s.describeImages(ctx, r, names)
}

// sampleLabelled looks at the heads of the images that a table of labels names.
func sampleLabelled(ctx context.Context, dir, labelFile string, task Task) (*Sample, error) {
	l, err := readLabelled(ctx, dir, labelFile)
	if err != nil {
		return nil, err
	}
	r := &imageRows{files: l.files}
	s := &Sample{Format: FormatImages, File: dir, LabelFile: labelFile, Numbers: l.areNumbers(task)}
	if s.Numbers {
		if r.labels, err = l.numbers(); err != nil {
			return nil, err
		}
		s.Features = []SampleFeature{{Name: filepath.Base(labelFile), Kind: "number", Shape: fmt.Sprintf("%d images", len(l.files)), Example: l.labels[0], Rule: s.labelRule()}}
		return s, s.describeImages(ctx, r, nil)
	}
	var names []string
	if r.labels, names, err = l.classes(nil); err != nil {
		return nil, err
	}
	return s, s.describeImages(ctx, r, names)
}

// describeImages notes the size to train with, and the classes.
func (s *Sample) describeImages(ctx context.Context, r *imageRows, names []string) error {
	s.Rows, s.Classes, s.ClassNames, s.Bytes = len(r.files), len(names), names, true
	heights, widths, grey, err := r.sizes(ctx, s.File)
	if err != nil {
		return err
	}
	channels := 3
	if grey {
		channels = 1
	}
	s.Image = []int{trainingSize(heights), trainingSize(widths), channels}
	counts := make([]int, len(names))
	for _, class := range r.labels {
		if !s.Numbers {
			counts[class]++
		}
	}
	for i, name := range names {
		first := slices.Index(r.labels, int64(i))
		shape := fmt.Sprintf("%d images", counts[i])
		s.Features = append(s.Features, SampleFeature{Name: name, Kind: "class", Shape: shape, Example: filepath.Base(r.files[first]), Rule: fmt.Sprintf("class %d", i)})
	}
	return nil
}

// sizes returns the heights and widths of all images, and whether all are grey.
func (r *imageRows) sizes(ctx context.Context, dir string) (heights, widths []int, grey bool, err error) {
	grey = true
	errs := &Errors{File: dir}
	for _, name := range r.files {
		if err := ctx.Err(); err != nil {
			return nil, nil, false, err
		}
		c, e := imageHead(name)
		if e != nil {
			errs.add(e)
			continue
		}
		heights, widths = append(heights, c.Height), append(widths, c.Width)
		grey = grey && isGrey(c)
	}
	return heights, widths, grey, errs.err()
}

// trainingSize returns the pixels along a side to train with: the median, of
// larger images 64.
func trainingSize(all []int) int {
	const most = 64
	all = slices.Sorted(slices.Values(all))
	return min(most, max(1, all[len(all)/2]))
}
