package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/npz"
)

// An .npz file of NumPy has several arrays, and they are named as if it were their folder: mnist.npz/x_train.

// archiveOf returns the archive that an array is in, and its name there; false for a file of its own.
func archiveOf(name string) (archive, member string, ok bool) {
	if _, err := os.Stat(name); err == nil {
		return "", "", false
	}
	for archive = filepath.Dir(name); ; archive = filepath.Dir(archive) {
		info, err := os.Stat(archive)
		switch {
		case err == nil && info.Mode().IsRegular():
			member, err = filepath.Rel(archive, name)
			return archive, strings.TrimSuffix(filepath.ToSlash(member), npySuffix), err == nil
		case err == nil, archive == filepath.Dir(archive):
			return "", "", false
		}
	}
}

const (
	npySuffix = ".npy"
	zipMagic  = "PK\x03\x04"
)

// isArchive reports whether a file, which begins with head, holds arrays of NumPy.
func isArchive(name string, head []byte) bool {
	if !strings.HasPrefix(string(head), zipMagic) {
		return false
	}
	r, err := npz.Open(name)
	if err != nil {
		return strings.EqualFold(filepath.Ext(name), ".npz") // whose damage is then reported
	}
	defer r.Close()
	for i := range r.Len() {
		if info, err := r.Info(i); err == nil || info.Foreign != "" {
			return true
		}
	}
	return false
}

// archived calls f with the arrays of an archive.
func archived(archive string, f func(r *npz.Reader) error) error {
	r, err := npz.Open(archive)
	if err != nil {
		return archiveError(archive, err)
	}
	defer r.Close()
	return f(r)
}

// archiveError is an error of package npz as one of the data.
func archiveError(name string, err error) error {
	var corrupt *ckptfmt.CorruptError
	if !errors.As(err, &corrupt) {
		return openError(name, err)
	}
	part := corrupt.Part
	if part != "" {
		part += ": "
	}
	return &Error{File: name, Reason: "is not an intact archive of NumPy", Err: fmt.Errorf("%s%w", part, corrupt.Err), Hint: "it is damaged or cut short; get it again"}
}

// arraysIn returns the names of the arrays of an archive that fit.
func arraysIn(archive string, fit func(ckptfmt.TensorInfo) bool) (names []string, err error) {
	err = archived(archive, func(r *npz.Reader) error {
		for i := range r.Len() {
			if info, err := r.Info(i); err == nil && isNumber(info.DType) && fit(info) {
				names = append(names, info.Name)
			}
		}
		return nil
	})
	return names, err
}

// isFile reports whether there is a file, or an array of an archive.
func isFile(name string) bool {
	archive, member, ok := archiveOf(name)
	if !ok {
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular()
	}
	found := false
	err := archived(archive, func(r *npz.Reader) error {
		for i := range r.Len() {
			found = found || r.Name(i) == member
		}
		return nil
	})
	return err == nil && found
}

// readMember reads an array of an archive.
func readMember(ctx context.Context, archive, member string, limit int64) (a *array, err error) {
	err = archived(archive, func(r *npz.Reader) error {
		parts := r.Parts()
		at := slices.IndexFunc(parts, func(p ckptfmt.Part) bool { return p.Name == member })
		if at < 0 {
			names := make([]string, len(parts))
			for i, p := range parts {
				names[i] = p.Name
			}
			return &Error{File: archive, Reason: fmt.Sprintf("has no array %q", member), Hint: fmt.Sprintf("its arrays are %q", names)}
		}
		a, err = readPart(ctx, &parts[at], limit)
		return err
	})
	return a, err
}

func readPart(ctx context.Context, p *ckptfmt.Part, limit int64) (*array, error) {
	switch {
	case p.Err != nil:
		return nil, unsupported(p.Err)
	case p.Strings != nil:
		return nil, notNumbers(p.DType)
	}
	shape, total, err := sizesOf(p.DType, p.Shape, limit)
	if err != nil {
		return nil, err
	}
	elements, err := p.Open()
	if err != nil {
		return nil, err
	}
	defer elements.Close()
	data, err := readGrowing(untilDone{ctx, elements}, total)
	if err == nil {
		_, err = io.Copy(io.Discard, elements) // which checks them
	}
	if err != nil {
		return nil, err
	}
	return newArray(p.DType, shape, data)
}

// examplesOf returns the name of the array with the examples in an archive, and any other name as it is.
func examplesOf(name string) (string, error) {
	if !isZip(name) {
		return name, nil
	}
	all, err := arraysIn(name, func(i ckptfmt.TensorInfo) bool { return len(i.Shape) > 2 || len(i.Shape) == 2 && i.Shape[1] != 1 })
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", &Error{File: name, Reason: "has no array of numbers with an example in each row", Hint: "it needs two dimensions or more; of numbers alone make a table"}
	}
	found := all
	for _, narrower := range []func(string) bool{isNoTest, isExamples, isTrain} {
		if some := slices.DeleteFunc(slices.Clone(found), func(n string) bool { return !narrower(n) }); len(some) > 0 {
			found = some
		}
	}
	if len(found) > 1 {
		return "", &Error{File: name, Reason: fmt.Sprintf("has several arrays that may be the examples: %q", found), Hint: "give one of them, as " + filepath.Join(name, found[0])}
	}
	return filepath.Join(name, filepath.FromSlash(found[0])), nil
}

func isZip(name string) bool {
	if !isFile(name) {
		return false // a pipe can be read only once
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [len(zipMagic)]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == zipMagic
}

// isNoTest reports whether the name of an array is not that of a test part, isTrain whether it is that of the training
// part, and isExamples whether it is one that examples have.
func isNoTest(name string) bool { return !hasWord(name, testWords) }

func isTrain(name string) bool { return hasWord(name, []string{"train", "training"}) }

func isExamples(name string) bool {
	words := make([]string, len(labelWords))
	for i, w := range labelWords {
		words[i] = w[0]
	}
	return hasWord(name, words)
}

func hasWord(name string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		_, ok := replaceWord(strings.ToLower(name), strings.ToLower(w), "")
		return ok
	})
}
