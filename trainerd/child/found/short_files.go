package found

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// knownSizes is how many checkpoints in a row must have a file before a shorter one counts as cut
// short.
const knownSizes = 3

// sizes are the sizes of checkpoints' files, in the order of the checkpoints, by the files' general
// names.
type sizes map[string]sizeOf

// sizeOf are the sizes of the files of one name.
type sizeOf struct {
	last  []int64 // of the last knownSizes checkpoints, if there are so many
	short int64   // of one since that did not count because it was shorter, 0 for none
}

// least returns the size below which a file counts as cut short: it is shorter than the previous
// ones by more than twice their range. It returns 0 if there are too few.
func (of sizeOf) least() int64 { return of.leastFrom(knownSizes) }

// leastFrom is least with at least n previous files.
func (of sizeOf) leastFrom(n int) int64 {
	if len(of.last) < n {
		return 0
	}
	low, high := slices.Min(of.last), slices.Max(of.last)
	return low - 2*(high-low)
}

// shortest returns the smallest size, 0 for none.
func (of sizeOf) shortest() int64 {
	if len(of.last) == 0 {
		return 0
	}
	return slices.Min(of.last)
}

// leastOfFew returns the size below which a file may have been cut short, if there are too few
// previous ones to show that: compressed files differ by less than a tenth.
func (of sizeOf) leastOfFew() int64 {
	if len(of.last) == 0 || len(of.last) >= knownSizes {
		return 0
	}
	return slices.Min(of.last) * 9 / 10
}

// add records the sizes of an intact checkpoint.
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

// sizeNames returns the general names of the files of a checkpoint. Several names that differ only
// in numbers, like those of the pieces of a tensor, keep the numbers below the checkpoint's folder:
// the last piece may well be shorter than the others.
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

// sizesOf returns the sizes of existing checkpoints.
func sizesOf(known []Checkpoint) sizes {
	all := sizes{}
	for _, c := range known {
		all.add(c.record)
	}
	return all
}

// eachShort calls f for the files of a checkpoint that are shorter than least returns for the
// previous files of their names. A file with the size of the last short one is not included: once
// may be a cut, twice in a row is how the program writes. Formats that show whether anything is
// missing at their end may be shorter, including pickles, by their last byte.
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

// isShort returns an error when a file of a checkpoint was cut short, as far as its size shows
// that. On a full disk, a program's last file counts as cut if it is at all shorter, and for other
// files two previous ones are enough: the program may not have checked that the file was written.
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

// maybeShort reports whether a file of a checkpoint may have been cut short. In a folder with its
// framework's completion mark, none was.
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

// noteShort records the sizes of a checkpoint that does not count.
func (s *Store) noteShort(c Checkpoint) {
	s.eachShort(&c, sizeOf.least, func(_, general string, bytes int64, of sizeOf) {
		of.short = bytes
		s.sizes[general] = of
	})
}
