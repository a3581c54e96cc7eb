package dataset

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// labelledImages are images in one folder that a table names, with their labels as it has them.
type labelledImages struct {
	dir, table string
	file       int // column of the table with the names
	label      int // column with the labels
	above      int // folders that begin the names and are not in dir, as in train/1.png for the folder train
	named      map[string]string
	files      []string
	labels     []string
	places     []place // of the labels
}

// place is where a row of a table is.
type place struct {
	file   string // of several
	line   int
	record int
}

func placeOf(row *table.Row) place {
	return place{file: row.File(), line: row.Line(0), record: row.Number}
}

func (p place) fault(table, reason, hint string) *Error {
	e := &Error{File: table, Line: p.line, Reason: reason, Hint: hint}
	if p.file != "" {
		e.File = p.file
	}
	if e.Line == 0 {
		e.Record = p.record
	}
	return e
}

// readLabelled reads a table of images in a folder.
func readLabelled(ctx context.Context, dir, name string) (*labelledImages, error) {
	t, err := openFiles(name, table.Options{Sniff: true})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	l := &labelledImages{dir: dir, table: name, file: -1, named: make(map[string]string)}
	columns, headed := t.Columns, t.Options.Header || t.Options.Format != table.CSV
	errs := &Errors{File: name}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, tableError(name, err)
		}
		if l.file < 0 && !headed && !l.namesImage(row) {
			columns, headed = slices.Clone(row.Fields), true // words above words do not look like a header
			continue
		}
		if l.file < 0 {
			if err := l.findColumns(columns, row); err != nil {
				return nil, err
			}
		}
		if e := l.add(row); e != nil {
			errs.add(e)
		}
	}
	if len(l.files) == 0 && len(errs.Problems) == 0 {
		return nil, &Error{File: name, Reason: "holds no rows", Hint: "give a table with the name and the label of each image"}
	}
	return l, errs.err()
}

// namesImage reports whether a row names an image, and finds the folders that are above it.
func (l *labelledImages) namesImage(row *table.Row) bool {
	const most = 10
	for l.above = 0; l.above < most; l.above++ {
		if slices.ContainsFunc(row.Fields, func(field string) bool { return l.image(field) != "" }) {
			return true
		}
	}
	l.above = 0
	return false
}

// findColumns finds the column with the names of images, and that with their labels: the only
// other one, or the one called like a label.
func (l *labelledImages) findColumns(columns []string, row *table.Row) error {
	l.namesImage(row)
	l.file = slices.IndexFunc(row.Fields, func(field string) bool { return isImage(field) && l.image(field) != "" })
	if l.file < 0 {
		l.file = slices.IndexFunc(row.Fields, func(field string) bool { return l.image(field) != "" })
	}
	if l.file < 0 {
		return placeOf(row).fault(l.table, fmt.Sprintf("the row names no image in %s: %s", l.dir, quoteNames(row.Fields)), "give the folder that has the images which the table names")
	}
	l.label = 1 - l.file
	if len(columns) == 2 {
		return nil
	}
	for _, name := range labelNames {
		l.label = slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, name) })
		if l.label >= 0 && l.label != l.file {
			return nil
		}
	}
	return &Error{File: l.table, Reason: "has several columns that may have the labels: " + quoteNames(columns), Hint: "leave two, the name of the image and its label, or call that column label"}
}

// image returns the file of an image that a field names, maybe without the end of its name; "" if
// there is none.
func (l *labelledImages) image(field string) string {
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(field), `\`, "/"), "/")
	if len(parts) <= l.above {
		return ""
	}
	name := filepath.Join(parts[l.above:]...)
	if name == "" {
		return ""
	}
	for _, end := range []string{"", ".jpg", ".jpeg", ".png", ".JPG", ".gif", ".bmp"} {
		path := filepath.Join(l.dir, name+end)
		if !isImage(path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

func (l *labelledImages) add(row *table.Row) *Error {
	if len(row.Fields) <= max(l.file, l.label) {
		return placeOf(row).fault(l.table, "the row has no label", "add it, or remove the row")
	}
	path := l.image(row.Fields[l.file])
	if path == "" {
		return placeOf(row).fault(l.table, fmt.Sprintf("there is no image %s in %s", clip(row.Fields[l.file]), l.dir), "correct the name, or remove the row")
	}
	if other, ok := l.named[path]; ok && other != row.Fields[l.file] {
		return placeOf(row).fault(l.table, fmt.Sprintf("%s and %s would be the same image, %s", clip(other), clip(row.Fields[l.file]), path), "give the folder that has their folders")
	}
	l.named[path] = strings.Clone(row.Fields[l.file])
	l.files, l.places = append(l.files, path), append(l.places, placeOf(row))
	l.labels = append(l.labels, strings.Clone(strings.TrimSpace(row.Fields[l.label])))
	return nil
}

// numbers returns the labels as the bits of numbers.
func (l *labelledImages) numbers() (labels, error) {
	errs := &Errors{File: l.table}
	all := make(labels, len(l.labels))
	for i, text := range l.labels {
		v, reason, hint := parseFeature(text)
		if reason != "" {
			errs.add(l.places[i].fault(l.table, "the label: "+reason, hint))
		}
		all[i] = int64(math.Float32bits(v))
	}
	return all, errs.err()
}

// classes returns the labels as classes, and their names; known are those of the training.
func (l *labelledImages) classes(known []string) (all labels, names []string, err error) {
	words, errs := newVocabulary(known, maxClasses), &Errors{File: l.table}
	all = make(labels, len(l.labels))
	for i, text := range l.labels {
		class, reason, hint := words.addLabel(text)
		if reason != "" {
			errs.add(l.places[i].fault(l.table, reason, hint))
		}
		all[i] = class
	}
	if err := errs.err(); err != nil {
		return nil, nil, err
	}
	if names = words.sort(); len(names) < 2 {
		return nil, nil, &Error{File: l.table, Reason: "every label is " + clip(names[0]), Hint: "a classifier needs at least two classes"}
	}
	for i, class := range all {
		all[i] = int64(words.order[class])
	}
	return all, names, nil
}

// listTable finds the files that a table names, and returns the names of their classes.
func (r *imageRows) listTable(ctx context.Context, dir, labelFile string, numbers bool, known []string) (names []string, err error) {
	l, err := readLabelled(ctx, dir, labelFile)
	if err != nil {
		return nil, err
	}
	r.files = l.files
	if numbers {
		r.labels, err = l.numbers()
		return nil, err
	}
	r.labels, names, err = l.classes(known)
	return names, err
}

// areNumbers reports whether the labels are numbers rather than classes.
func (l *labelledImages) areNumbers(task Task) bool {
	p := newProfile("", nil)
	for _, text := range l.labels {
		p.add(text)
	}
	return task == Regression || task == AnyTask && !p.isClasses(false)
}
