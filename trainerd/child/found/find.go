package found

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// find returns all checkpoints that the pattern matches, by step. Files that come and go meanwhile
// are not an error. If several starts of the program have saved a step, each in its own folder, the
// newest counts.
func (s *Store) find() map[key]Checkpoint {
	byRun := map[key]map[string]Checkpoint{}
	joint := map[string]key{} // of files without a step that are one checkpoint, by run
	names := s.names()
	if !s.reused && beginAgain(names) {
		s.tellByTime()
	}
	for _, name := range names {
		size, saved, err := s.measureFile(name)
		if err != nil {
			continue
		}
		k, run := keyOf(name, s.reused), runOf(name)
		if len(s.parts) > 1 && stepOfName(path.Base(name)) == NoStep {
			if _, there := joint[run]; !there {
				joint[run] = k
			}
			k = joint[run]
		}
		if byRun[k] == nil {
			byRun[k] = map[string]Checkpoint{}
		}
		c := byRun[k][run]
		c.Step, c.Size, c.reused = k.step, c.Size+size, s.reused
		c.files = append(c.files, name)
		if saved.After(c.Saved) {
			c.Saved = saved
		}
		byRun[k][run] = c
	}
	found := map[key]Checkpoint{}
	for k, runs := range byRun {
		c := slices.MaxFunc(slices.Collect(maps.Values(runs)), func(a, b Checkpoint) int {
			return cmp.Or(a.Saved.Compare(b.Saved), cmp.Compare(a.files[0], b.files[0]))
		})
		slices.Sort(c.files)
		c.Path = filepath.Join(s.root.Name(), filepath.FromSlash(s.nameOf(c.files)))
		found[k] = c
	}
	return found
}

// names returns all names that the pattern matches, and those of the other files of bundles.
func (s *Store) names() []string {
	var matches []string
	for _, p := range s.parts {
		found, _ := fs.Glob(s.root.FS(), p) // CheckPattern has seen the pattern
		matches = append(matches, found...)
	}
	names := slices.DeleteFunc(matches, isForeign)
	dirs, meant := map[string]bool{}, map[string]bool{} // what is meant is said without shards
	for _, name := range names {
		prefix := shardTail().ReplaceAllString(name, "")
		if meant[prefix] = true; prefix != name {
			dirs[path.Dir(name)] = true
		}
	}
	for dir := range dirs {
		entries, _ := fs.ReadDir(s.root.FS(), dir) // what cannot be read has none
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if prefix := shardTail().ReplaceAllString(name, ""); prefix != name && meant[prefix] {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// measureAll returns the size of several files, and when one was last written.
func (s *Store) measureAll(names []string) (size int64, saved time.Time, err error) {
	for _, name := range names {
		n, at, err := s.measureFile(name)
		if err != nil {
			return 0, time.Time{}, err
		}
		if size += n; at.After(saved) {
			saved = at
		}
	}
	return size, saved, nil
}

// measureFile returns the size of a file, or of all files in a folder, and when it was last
// written.
func (s *Store) measureFile(name string) (size int64, saved time.Time, err error) {
	info, err := s.root.Lstat(name)
	if err != nil {
		return 0, time.Time{}, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return 0, time.Time{}, errors.New("a link, or not a regular file")
	}
	err = fs.WalkDir(s.root.FS(), name, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			size += info.Size()
		}
		if info.ModTime().After(saved) {
			saved = info.ModTime()
		}
		return nil
	})
	return size, saved, err
}
