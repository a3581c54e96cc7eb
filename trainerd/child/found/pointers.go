package found

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// alias is a second name of a checkpoint, or of one of its files, by which the program
// may find it: a file that names it, a symbolic link, or a hard link.
type alias struct {
	name string                    // below the logdir
	says func(c Checkpoint) string // the text of a file that names one, "" for none; nil for a link
	more bool                      // that file has more than its name
	part string                    // the general name of the file of the checkpoint that a link is to
	only bool                      // the checkpoint has no other
	rest string                    // the rest of its name, if that is a folder
	file string                    // below the logdir, that a link is to
	text string                    // of a symbolic link; "" for a hard link
}

// aliases returns the second names of a checkpoint, next to its files and in the folders above.
// The file `checkpoint` of TensorFlow is another, see [ckptdir.Forget].
func (s *Store) aliases(c Checkpoint) (all []alias) {
	own := s.infosOf(c)
	for _, dir := range foldersWithNames(c) {
		entries, _ := fs.ReadDir(s.root.FS(), dir) // what cannot be read has none
		for _, entry := range entries {
			if a, ok := s.aliasIn(c, own, path.Join(dir, entry.Name()), entry); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// foldersWithNames returns the folders in which the second names of a checkpoint may be: those of
// its files, one for each process perhaps, and those above them.
func foldersWithNames(c Checkpoint) (dirs []string) {
	for _, name := range c.files {
		for _, dir := range []string{path.Dir(name), path.Dir(path.Dir(name))} {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// aliasIn returns an entry of a folder as an alias, if it is one of the checkpoint.
func (s *Store) aliasIn(c Checkpoint, own map[string]fs.FileInfo, name string, entry fs.DirEntry) (a alias, ok bool) {
	if p, ok := s.readPointer(name); ok && !p.isState() {
		if at := s.mentions(p, c); at != nil {
			more := p.text[at[0].from:at[0].to] != strings.TrimSpace(p.text)
			return alias{name: name, says: func(to Checkpoint) string { return p.rewritten(at, to) }, more: more}, true
		}
	}
	return s.linkTo(c, own, name, entry)
}

// named returns the second names of the checkpoints that count, by the checkpoints' paths: symbolic
// links, and files that name them, next to them and in the folder above.
func (s *Store) named() map[string]string {
	names, seen := map[string]string{}, map[string]bool{}
	for _, c := range s.known {
		for _, dir := range foldersWithNames(c) {
			if !seen[dir] {
				seen[dir] = true
				s.addNamed(names, dir)
			}
		}
	}
	return names
}

// addNamed adds the second names in a folder.
func (s *Store) addNamed(names map[string]string, dir string) {
	entries, _ := fs.ReadDir(s.root.FS(), dir) // what cannot be read has none
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if entry.Type()&fs.ModeSymlink != 0 {
			s.addLinked(names, name)
		} else if p, ok := s.readPointer(name); ok {
			s.addPointed(names, p)
		}
	}
}

func (s *Store) addLinked(names map[string]string, link string) {
	for _, c := range s.known {
		if _, ok := s.symlinkTo(c, link); ok {
			names[c.Path] = "the link " + path.Base(link) + " is to it"
		}
	}
}

func (s *Store) addPointed(names map[string]string, p pointer) {
	for _, c := range s.known {
		if s.mentions(p, c) != nil {
			names[c.Path] = "the file " + path.Base(p.name) + " names it"
		}
	}
}

// infosOf returns the file infos of a checkpoint's files, by name.
func (s *Store) infosOf(c Checkpoint) map[string]fs.FileInfo {
	own := map[string]fs.FileInfo{}
	files, err := integrity.Files(s.root, c.files)
	if err != nil {
		return nil
	}
	for _, name := range files {
		if info, err := s.root.Lstat(name); err == nil {
			own[name] = info
		}
	}
	return own
}

// linkTo returns an entry of a folder as an alias, if it is a link to the checkpoint.
func (s *Store) linkTo(c Checkpoint, own map[string]fs.FileInfo, name string, entry fs.DirEntry) (a alias, ok bool) {
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		return s.symlinkTo(c, name)
	case !entry.Type().IsRegular() || own[name] != nil || s.means([]string{name}):
		return alias{}, false // it is the checkpoint, or another
	}
	info, _ := entry.Info() // nil for what is gone, which is not a file
	for file, other := range own {
		if os.SameFile(info, other) {
			return s.aliasOf(c, name, file, "")
		}
	}
	return alias{}, false
}

// symlinkTo returns a symbolic link as an alias, if it points to the checkpoint.
func (s *Store) symlinkTo(c Checkpoint, name string) (alias, bool) {
	text, err := s.root.Readlink(name)
	if err != nil {
		return alias{}, false
	}
	return s.aliasOf(c, name, s.target(name, text), text)
}

// target returns the target of a symbolic link, as a name below the logdir.
func (s *Store) target(name, text string) string {
	if !filepath.IsAbs(text) {
		return path.Join(path.Dir(name), filepath.ToSlash(text))
	}
	rel, err := filepath.Rel(s.root.Name(), text)
	if err != nil {
		return text
	}
	return filepath.ToSlash(rel)
}

// aliasOf returns a link to a file as an alias, if the file belongs to the checkpoint.
func (s *Store) aliasOf(c Checkpoint, name, file, text string) (alias, bool) {
	for _, part := range c.files {
		if rest, ok := strings.CutPrefix(file, part); ok && (rest == "" || rest[0] == '/') {
			return alias{name: name, part: integrity.General(part), only: len(c.files) == 1, rest: rest, file: file, text: text}, true
		}
	}
	return alias{}, false
}

// point makes an alias name another checkpoint. If that has no such file, the alias is removed.
func (s *Store) point(a alias, to Checkpoint) error {
	if a.says != nil {
		if text := a.says(to); text != "" {
			return atomicfile.WriteFile(s.disk, s.abs(a.name), []byte(text))
		}
		return s.unlink(a)
	}
	i := slices.IndexFunc(to.files, func(name string) bool { return integrity.General(name) == a.part })
	if i < 0 && !a.only {
		return s.unlink(a)
	}
	return s.lead(a, to.files[max(i, 0)]+a.rest)
}

// lead makes a link point to a file, or removes the link if there is no such file.
func (s *Store) lead(a alias, file string) error {
	if _, err := s.root.Lstat(file); err != nil {
		return s.unlink(a)
	}
	temp := atomicfile.TempName(s.abs(a.name))
	if err := s.link(a, file, temp); err != nil {
		return err
	}
	return errors.Join(s.disk.Rename(temp, s.abs(a.name)), s.disk.SyncDir(filepath.Dir(temp)))
}

// link makes a link of the same kind as an alias.
func (s *Store) link(a alias, file, temp string) error {
	if a.text == "" {
		return atomicfile.Link(s.disk, s.abs(file), temp)
	}
	text := s.abs(file)
	if !filepath.IsAbs(a.text) {
		rel, err := filepath.Rel(filepath.Dir(temp), text)
		if err != nil {
			return err
		}
		text = rel
	}
	return s.root.Symlink(text, path.Join(path.Dir(a.name), filepath.Base(temp)))
}

// unlink removes an alias. A file that contains more than the name goes to the damaged ones.
func (s *Store) unlink(a alias) error {
	if a.more {
		_, err := checkpoint.MoveAside(s.disk, s.root.Name(), path.Base(a.name), []string{s.abs(a.name)}, time.Now())
		return err
	}
	return errors.Join(s.disk.Remove(s.abs(a.name)), s.disk.SyncDir(filepath.Dir(s.abs(a.name))))
}

// repoint makes the aliases of a checkpoint that is about to be moved aside name the newest
// verified one before it in the same folder. If there is none, they are removed, so that the
// program starts from scratch.
func (s *Store) repoint(gone Checkpoint, names []alias) error {
	to, ok := s.newestBefore(gone)
	var errs []error
	for _, a := range names {
		if ok {
			errs = append(errs, s.point(a, to))
		} else {
			errs = append(errs, s.unlink(a))
		}
	}
	return errors.Join(append(errs, ckptdir.Forget(gone.Path, &ckptfmt.FileOptions{FS: s.disk}))...)
}

// newestBefore returns the newest verified checkpoint before another in the same folder.
func (s *Store) newestBefore(c Checkpoint) (newest Checkpoint, ok bool) {
	for _, k := range s.known {
		if k.Step != NoStep && path.Dir(k.files[0]) == path.Dir(c.files[0]) && k.key() != c.key() && !k.IsNewer(&c) {
			newest, ok = k, true
		}
	}
	return newest, ok
}

// keep makes the aliases of a checkpoint that is about to be moved aside lead to the copy that
// takes its place: all except hard links already do.
func (s *Store) keep(names []alias, copyOf *manifest.Record) error {
	var errs []error
	for _, a := range names {
		if a.says == nil && a.text == "" {
			errs = append(errs, s.lead(a, path.Join(copyOf.Copy, a.file)))
		}
	}
	return errors.Join(errs...)
}
