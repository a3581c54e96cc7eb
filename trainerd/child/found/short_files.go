package found

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// knownSizes is how many checkpoints in a row must have a file before a shorter one
// shows that it was cut.
const knownSizes = 3

// sizes are those of the files of checkpoints, in the order in which these came, by
// the files' general names.
type sizes map[string]sizeOf

// sizeOf are the sizes of the files of one name.
type sizeOf struct {
	last  []int64 // of the last knownSizes checkpoints, if there are so many
	short int64   // of one since that did not count because it was shorter, 0 for none
}

// least returns the size below which a file was cut: one that is shorter than those
// before it by more than twice what these differ by. 0 where these are too few.
func (of sizeOf) least() int64 { return of.leastFrom(knownSizes) }

// leastFrom is least that goes by as few as n.
func (of sizeOf) leastFrom(n int) int64 {
	if len(of.last) < n {
		return 0
	}
	low, high := slices.Min(of.last), slices.Max(of.last)
	return low - 2*(high-low)
}

// shortest returns the size of the shortest one, 0 for none.
func (of sizeOf) shortest() int64 {
	if len(of.last) == 0 {
		return 0
	}
	return slices.Min(of.last)
}

// leastOfFew returns the size below which a file may have been cut, where those before it
// are too few to show that: compressed ones differ by less than a tenth.
func (of sizeOf) leastOfFew() int64 {
	if len(of.last) == 0 || len(of.last) >= knownSizes {
		return 0
	}
	return slices.Min(of.last) * 9 / 10
}

// add notes the sizes of an intact checkpoint.
func (all sizes) add(r *manifest.Record) {
	if r == nil {
		return
	}
	var files []string
	for _, f := range r.Files {
		files = append(files, f.Name)
	}
	names := sizeNames(r.Parts, files)
	for _, f := range r.Files {
		name := names[f.Name]
		last := append(slices.Clone(all[name].last), f.Bytes)
		all[name] = sizeOf{last: last[max(len(last)-knownSizes, 0):]}
	}
}

// sizeNames returns the general names of the files of a checkpoint. Several that differ in
// numbers alone, as pieces of a tensor do, keep those below the checkpoint's folder: the
// last piece may well be shorter than the others.
func sizeNames(parts, files []string) map[string]string {
	names, count := make(map[string]string, len(files)), map[string]int{}
	for _, file := range files {
		names[file] = integrity.General(file)
		count[names[file]]++
	}
	for _, file := range files {
		if count[names[file]] == 1 {
			continue
		}
		names[file] = file
		for _, part := range parts {
			if rest, ok := strings.CutPrefix(file, part+"/"); ok {
				names[file] = integrity.General(part) + "/" + rest
			}
		}
	}
	return names
}

// sizesOf returns the sizes of checkpoints that are there.
func sizesOf(known []Checkpoint) sizes {
	all := sizes{}
	for _, c := range known {
		all.add(c.record)
	}
	return all
}

// eachShort calls f for the files of a checkpoint that are shorter than those of their
// name before, by what least says of these. One that has the size of the last such file
// is not: once may be a cut, twice in a row is how the program writes. Forms that show
// whether anything is missing at their end may be shorter, pickles too by their last byte.
func (s *Store) eachShort(c *Checkpoint, least func(sizeOf) int64, f func(name, general string, bytes int64, of sizeOf)) {
	if len(s.sizes) == 0 {
		return
	}
	files, err := integrity.Files(s.root, c.files)
	if err != nil {
		return
	}
	names := sizeNames(c.files, files)
	for _, name := range files {
		of := s.sizes[names[name]]
		info, err := s.root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() >= least(of) || info.Size() == of.short {
			continue
		}
		if isPickle := integrity.Format([]string{name}) == "pickle"; !isPickle && !integrity.IsWholeFile(s.root, c.files, name) {
			f(name, names[name], info.Size(), of)
		}
	}
}

// isShort returns an error when a file of a checkpoint was cut, as far as its size
// shows that. On a full disk, any shorter file was that is the last of a program, and two
// before it show that of another: the program may not have looked whether it was written.
func (s *Store) isShort(c Checkpoint) (err error) {
	s.eachShort(&c, sizeOf.shortest, func(name, _ string, bytes int64, of sizeOf) {
		if bytes < of.least() || (c.last || bytes < of.leastFrom(2)) && s.isFull(of.shortest()) {
			err = fmt.Errorf("%s has %d bytes instead of %d or more, %w", name, bytes, of.shortest(), integrity.ErrUnmarked)
		}
	})
	return err
}

// isLast reports whether nothing shows that the program has gone past a checkpoint.
func (s *Store) isLast(c *Checkpoint) bool { return s.opts.IsPast != nil && !s.opts.IsPast(c) }

// maybeShort reports whether a file of a checkpoint may have been cut. In a folder with
// the mark of its framework, none was.
func (s *Store) maybeShort(c *Checkpoint) (maybe bool) {
	if !c.isOfFiles(s.root) && integrity.IsSealed(s.root, c.files) {
		return false
	}
	s.eachShort(c, sizeOf.leastOfFew, func(string, string, int64, sizeOf) { maybe = true })
	return maybe
}

// isOfFiles reports whether a checkpoint has no folders.
func (c *Checkpoint) isOfFiles(root *os.Root) bool {
	return !slices.ContainsFunc(c.files, func(name string) bool {
		info, err := root.Lstat(name)
		return err == nil && info.IsDir()
	})
}

// noteShort remembers the sizes of a checkpoint that does not count.
func (s *Store) noteShort(c Checkpoint) {
	s.eachShort(&c, sizeOf.least, func(_, general string, bytes int64, of sizeOf) {
		of.short = bytes
		s.sizes[general] = of
	})
}
