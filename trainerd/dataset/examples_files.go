package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// isRecord reports whether a file begins with the head of a TFRecord: a length
// and its checksum.
func isRecord(head [12]byte) bool {
	return crc32c.Masked(head[:8]) == binary.LittleEndian.Uint32(head[8:])
}

// openRecords reads TFRecord files one record after the other.
func (e *Examples) openRecords() error {
	files, err := matching(e.name)
	if err != nil {
		return err
	}
	o := Options{Image: e.schema.Image, Label: Column{Name: e.schema.Label.Name}, Numbers: e.schema.Label.Kind != KindCategory,
		Classes: e.schema.Classes}
	o.IDs = len(e.schema.Features) > 0 && e.schema.Features[0].Kind == KindID
	r := &recordReader{opts: o, files: files, features: e.schema.Records, width: len(e.schema.Features), at: -1, labelOptional: !e.opts.NeedLabel}
	e.close = append(e.close, r.close)
	e.HasLabels = true
	e.next = func(one *Example) error { return r.example(one) }
	return nil
}

// example reads the next record of all files.
func (r *recordReader) example(one *Example) error {
	for {
		if r.file == nil {
			if r.at+1 == len(r.files) {
				return io.EOF
			}
			if err := r.open(r.at + 1); err != nil {
				return asErrors(err)
			}
		}
		data, err := r.next()
		if err == io.EOF {
			r.close()
			continue
		}
		if err != nil {
			return asErrors(err)
		}
		x, label, err := r.parse(one.X, data)
		if err != nil {
			return err
		}
		one.X, one.Label = x, r.opts.labelValue(label)
		return nil
	}
}

// asErrors makes an error one that ends the reading.
func asErrors(err error) error {
	e := asError(err)
	return &Errors{File: e.File, Problems: []*Error{e}}
}

// noLabel is what a reader returns for an example without a label, where that is
// allowed.
const noLabel = math.MinInt64

// labelValue returns a label as Example has it.
func (o Options) labelValue(label int64) float64 {
	switch {
	case label == noLabel:
		return math.NaN()
	case o.Numbers:
		return float64(math.Float32frombits(uint32(label)))
	}
	return float64(label)
}

// openArrays reads a file of examples, and one of labels if there is one.
func (e *Examples) openArrays(ctx context.Context) error {
	name, err := examplesOf(e.name)
	if err != nil {
		return err
	}
	x, err := readArray(ctx, name, DefaultMemoryLimit)
	if err != nil {
		return err
	}
	s, err := x.source(name)
	if err != nil {
		return err
	}
	o := Options{Numbers: e.schema.Label.Kind != KindCategory, Classes: e.schema.Classes}
	l, err := e.arrayLabels(ctx, name, o, x.shape[0])
	if err != nil {
		return err
	}
	e.HasLabels = l != nil
	if err := s.setArray(x, make(labels, x.shape[0])); err != nil {
		return err
	}
	row := 0
	e.next = func(one *Example) (err error) {
		if row == x.shape[0] {
			return io.EOF
		}
		one.X, err = s.rows.features(one.X, row)
		if l != nil {
			one.Label = o.labelValue(l[row])
		}
		row++
		return err
	}
	return nil
}

// arrayLabels returns the labels of arrays, nil if they have none.
func (e *Examples) arrayLabels(ctx context.Context, examples string, o Options, rows int) (labels, error) {
	name := e.opts.Labels
	if name == "" {
		derived, err := labelsBeside(examples)
		there := err == nil && isFile(derived)
		if !there && e.opts.NeedLabel {
			return nil, &Error{File: examples, Reason: "its labels are not there", Err: err, Hint: "name their file with --labels"}
		}
		if !there {
			return nil, nil
		}
		name = derived
	}
	y, err := readArray(ctx, name, DefaultMemoryLimit)
	if err != nil {
		return nil, err
	}
	l, err := y.labels(name, o)
	if err == nil && len(l) != rows {
		return nil, &Error{File: name, Reason: fmt.Sprintf("holds %d labels, but %s %d examples", len(l), e.name, rows)}
	}
	return l, err
}

// openImages reads an image, a folder of images, or one of a folder for each
// class.
func (e *Examples) openImages(ctx context.Context) error {
	if len(e.schema.Image) != 3 {
		return &Error{File: e.name, Reason: "are images, but the model was not trained with images", Hint: "give data of the kind that it was trained with"}
	}
	list := e.imageFiles
	if e.opts.Labels != "" {
		list = e.labelledFiles
	}
	files, classes, err := list(ctx)
	if err != nil {
		return err
	}
	size := [3]int(e.schema.Image)
	var pixels []byte
	at := 0
	e.HasLabels = slices.ContainsFunc(classes, func(c float64) bool { return !math.IsNaN(c) })
	e.next = func(one *Example) (err error) {
		if at == len(files) {
			return io.EOF
		}
		name := files[at]
		one.Label, one.File = classes[at], name
		at++
		if pixels, err = readImage(pixels[:0], name, size); err != nil {
			return err
		}
		for _, v := range pixels {
			one.X = append(one.X, float32(v))
		}
		if math.IsNaN(one.Label) {
			if fault := e.labelError("is in no folder of a class that the model knows"); fault != nil {
				fault.File = name
				return fault
			}
		}
		return nil
	}
	return nil
}

// labelledFiles returns the images that a table names, with their labels.
func (e *Examples) labelledFiles(ctx context.Context) (files []string, values []float64, err error) {
	l, err := readLabelled(ctx, e.name, e.opts.Labels)
	if err != nil {
		return nil, nil, err
	}
	o := Options{Numbers: e.schema.Label.Kind != KindCategory}
	var all labels
	if o.Numbers {
		all, err = l.numbers()
	} else {
		all, _, err = l.classes(e.schema.Label.Vocabulary)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, label := range all {
		values = append(values, o.labelValue(label))
	}
	return l.files, values, nil
}

// imageFiles returns the images by name, with the class of the folder that each
// is in; NaN for none.
func (e *Examples) imageFiles(ctx context.Context) (files []string, classes []float64, err error) {
	class := math.NaN()
	add := func(name string) {
		files, classes = append(files, name), append(classes, class)
	}
	if info, err := os.Stat(e.name); err == nil && !info.IsDir() {
		add(e.name)
		return files, classes, nil
	}
	entries, err := os.ReadDir(e.name)
	if err != nil {
		return nil, nil, openError(e.name, err)
	}
	for _, entry := range entries {
		path := filepath.Join(e.name, entry.Name())
		if !isFolder(path, entry) {
			if isImage(entry.Name()) {
				class = math.NaN()
				add(path)
			}
			continue
		}
		inside, err := imagesBelow(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		class = math.NaN()
		if i := slices.Index(e.schema.Label.Vocabulary, entry.Name()); i >= 0 {
			class = float64(i)
		}
		for _, name := range inside.files {
			add(name)
		}
	}
	if len(files) == 0 {
		return nil, nil, &Error{File: e.name, Reason: "has no images, nor folders with any"}
	}
	return files, classes, nil
}
