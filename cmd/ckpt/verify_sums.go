package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/parallel"
)

// isUnsummed reports whether reading the tensors of a format finds nothing that the
// SHA-256 of its files does not: it has no checksums of its own.
func isUnsummed(kind formats.Kind) bool {
	return kind == formats.Safetensors || kind == formats.Sharded
}

// countOf returns the number of tensors.
func countOf(r *formats.Reader) int {
	n := 0
	for info, err := range r.Tensors() {
		if err == nil || info.Name != "" {
			n++
		}
	}
	return n
}

// sums holds the files of what is checked against the sums that something says of
// them, and reports whether each of them has one, and is intact.
func (v *verification) sums(ctx context.Context, path string, files []string) (all bool, err error) {
	sums, bad := v.finder.Find(files)
	for _, err := range bad { // what is wrong with a list is not wrong with the tensors
		fmt.Fprintf(v.c.App.ErrWriter, "ckpt: %v\n", err)
	}
	if len(sums) == 0 {
		return false, nil
	}
	failed := make([]error, len(sums))
	parallel.Each(ctx, len(sums), func(i int) { failed[i] = sums[i].Verify(ctx) })
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	intact := 0
	for i, err := range failed {
		switch {
		case err == nil:
			intact++
		case errors.Is(err, manifest.ErrOutdated):
			fmt.Fprintf(v.c.App.ErrWriter, "ckpt: %v; its sum was not checked\n", err)
		default:
			v.add(findingJSON{Kind: kindOf("file", err), Prefix: path, Name: jsonName(sums[i].File), Error: err.Error()})
		}
	}
	v.single += fmt.Sprintf("; SHA-256 of %d of %d files by %s", intact, len(files), sourcesOf(sums))
	if all = intact == len(files); all {
		v.summed[path] = true
	}
	return all, nil
}

// sourcesOf names what the sums were taken from.
func sourcesOf(sums []manifest.Sum) string {
	var names []string
	for _, s := range sums {
		name := filepath.Base(s.Source)
		if dir := filepath.Base(filepath.Dir(s.Source)); dir == manifest.RecordsDir {
			name = dir + "/" + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 2 {
		return fmt.Sprintf("%s and %d others", names[0], len(names)-1)
	}
	if len(names) == 2 {
		return names[0] + " and " + names[1]
	}
	return names[0]
}
