package child

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// pointers are files next to checkpoints that name the one to continue from, with
// how they name it: those of DeepSpeed, of Megatron-LM, and of detectron2. The file `checkpoint` of
// TensorFlow is another.
var pointers = map[string]func(c Checkpoint) string{
	"latest":                            func(c Checkpoint) string { return filepath.Base(c.Path) },
	"last_checkpoint":                   func(c Checkpoint) string { return filepath.Base(c.Path) },
	"latest_checkpointed_iteration.txt": func(c Checkpoint) string { return strconv.FormatInt(c.Step, 10) },
}

// maxPointer bounds what is read of a pointer.
const maxPointer = 4 << 10

// alias is a second name of a checkpoint, or of one of its files, by which the program
// may find it: a file that names it, a symbolic link, or a hard link.
type alias struct {
	name   string                    // below the logdir
	nameOf func(c Checkpoint) string // what a file says; nil for a link
	part   string                    // the general name of the file of the checkpoint that a link is to
	only   bool                      // the checkpoint has no other
	rest   string                    // the rest of its name, if that is a folder
	text   string                    // of a symbolic link; "" for a hard link
}

// aliases returns the second names of a checkpoint, next to it and in the folder above.
func (s *checkpointStore) aliases(c Checkpoint) (all []alias) {
	dir := path.Dir(c.files[0])
	for base, nameOf := range pointers {
		name := path.Join(dir, base)
		if s.readPointer(name) == nameOf(c) {
			all = append(all, alias{name: name, nameOf: nameOf})
		}
	}
	own := s.infosOf(c)
	for _, dir := range slices.Compact([]string{dir, path.Dir(dir)}) {
		entries, _ := fs.ReadDir(s.root.FS(), dir) // what cannot be read has none
		for _, entry := range entries {
			if a, ok := s.linkTo(c, own, path.Join(dir, entry.Name()), entry); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// symlinks returns which symbolic links are to checkpoints that count, by their paths:
// those next to them and in the folder above.
func (s *checkpointStore) symlinks() map[string]string {
	links, seen := map[string]string{}, map[string]bool{}
	for _, c := range s.known {
		dir := path.Dir(c.files[0])
		for _, dir := range []string{dir, path.Dir(dir)} {
			if !seen[dir] {
				seen[dir] = true
				s.addSymlinks(links, dir)
			}
		}
	}
	return links
}

// addSymlinks adds those of a folder.
func (s *checkpointStore) addSymlinks(links map[string]string, dir string) {
	entries, _ := fs.ReadDir(s.root.FS(), dir) // what cannot be read has none
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		for _, c := range s.known {
			if _, ok := s.symlinkTo(c, path.Join(dir, entry.Name())); ok {
				links[c.Path] = entry.Name()
			}
		}
	}
}

// infosOf returns what is known of the files of a checkpoint, by their names.
func (s *checkpointStore) infosOf(c Checkpoint) map[string]fs.FileInfo {
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

// linkTo returns the alias that an entry of a folder is, if it is a link to a checkpoint.
func (s *checkpointStore) linkTo(c Checkpoint, own map[string]fs.FileInfo, name string, entry fs.DirEntry) (a alias, ok bool) {
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		return s.symlinkTo(c, name)
	case !entry.Type().IsRegular() || own[name] != nil || s.means([]string{name}):
		return alias{}, false // it is the checkpoint, or another
	}
	info, err := entry.Info()
	if err != nil {
		return alias{}, false
	}
	for file, other := range own {
		if os.SameFile(info, other) {
			return s.aliasOf(c, name, file, "")
		}
	}
	return alias{}, false
}

// symlinkTo returns the alias that a symbolic link is, if it is to a checkpoint.
func (s *checkpointStore) symlinkTo(c Checkpoint, name string) (alias, bool) {
	text, err := s.root.Readlink(name)
	if err != nil {
		return alias{}, false
	}
	return s.aliasOf(c, name, s.target(name, text), text)
}

// target returns what a symbolic link is to, as a name below the logdir.
func (s *checkpointStore) target(name, text string) string {
	if !filepath.IsAbs(text) {
		return path.Join(path.Dir(name), filepath.ToSlash(text))
	}
	rel, err := filepath.Rel(s.root.Name(), text)
	if err != nil {
		return text
	}
	return filepath.ToSlash(rel)
}

// aliasOf returns the alias that a link to a file is, if that is one of a checkpoint.
func (s *checkpointStore) aliasOf(c Checkpoint, name, file, text string) (alias, bool) {
	for _, part := range c.files {
		if rest, ok := strings.CutPrefix(file, part); ok && (rest == "" || rest[0] == '/') {
			return alias{name: name, part: integrity.General(part), only: len(c.files) == 1, rest: rest, text: text}, true
		}
	}
	return alias{}, false
}

// point has an alias name another checkpoint. Where that has no such file, it is removed.
func (s *checkpointStore) point(a alias, to Checkpoint) error {
	if a.nameOf != nil {
		return atomicfile.WriteFile(s.disk, s.abs(a.name), []byte(a.nameOf(to)))
	}
	i := slices.IndexFunc(to.files, func(name string) bool { return integrity.General(name) == a.part })
	if i < 0 && !a.only {
		return s.unlink(a)
	}
	file := to.files[max(i, 0)] + a.rest
	if _, err := s.root.Lstat(file); err != nil {
		return s.unlink(a)
	}
	temp := atomicfile.TempName(s.abs(a.name))
	if err := s.link(a, file, temp); err != nil {
		return err
	}
	return errors.Join(s.disk.Rename(temp, s.abs(a.name)), s.disk.SyncDir(filepath.Dir(temp)))
}

// link makes a link of the kind of an alias.
func (s *checkpointStore) link(a alias, file, temp string) error {
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

// unlink removes an alias.
func (s *checkpointStore) unlink(a alias) error {
	return errors.Join(s.disk.Remove(s.abs(a.name)), s.disk.SyncDir(filepath.Dir(s.abs(a.name))))
}

// repoint has the aliases of a checkpoint that was moved aside name the newest verified
// one of the same folder, or the copy that took its place. Where there is none they are
// removed, so that the program starts from the beginning.
func (s *checkpointStore) repoint(gone Checkpoint, names []alias) error {
	to, ok := s.newestIn(path.Dir(gone.files[0]))
	if _, err := s.root.Lstat(gone.files[0]); err == nil {
		to, ok = gone, true
	}
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

// readPointer returns what a pointer names, "" for nothing.
func (s *checkpointStore) readPointer(name string) string {
	info, err := s.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPointer {
		return ""
	}
	text, _ := s.root.ReadFile(name) // what cannot be read names nothing
	return strings.TrimSpace(string(text))
}

// newestIn returns the newest verified checkpoint of a folder.
func (s *checkpointStore) newestIn(dir string) (newest Checkpoint, ok bool) {
	for _, c := range s.known {
		if c.Step != NoStep && path.Dir(c.files[0]) == dir {
			newest, ok = c, true
		}
	}
	return newest, ok
}
