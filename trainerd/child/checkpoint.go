package child

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/trainerd"
)

// NoStep is the step of a checkpoint whose name has none.
const NoStep = trainerd.NoStep

// Checkpoint is what the program has written at one step.
type Checkpoint struct {
	Path  string // what names it: a file or folder, or what its files begin with; absolute
	Step  int64  // NoStep for none
	Saved time.Time
	Size  int64

	files []string // below the logdir, with slashes
}

// shelf is the checkpoints in a logdir.
type shelf struct {
	root    *os.Root
	pattern string
	policy  []trainerd.Retention

	known   []Checkpoint         // that count, by step
	seen    map[int64]Checkpoint // as the last look found them
	refused map[int64]Checkpoint // that are cut short
}

// CheckPattern returns what is wrong with a pattern of checkpoints, "" for
// nothing.
func CheckPattern(pattern string) string {
	if _, err := path.Match(filepath.ToSlash(pattern), ""); err != nil {
		return fmt.Sprintf("%q is no pattern", pattern)
	}
	if !filepath.IsLocal(pattern) {
		return fmt.Sprintf("%q leads out of the logdir", pattern)
	}
	return ""
}

func newShelf(root *os.Root, pattern string, policy []trainerd.Retention) *shelf {
	return &shelf{root: root, pattern: path.Clean(filepath.ToSlash(pattern)), policy: policy,
		seen: map[int64]Checkpoint{}, refused: map[int64]Checkpoint{}}
}

// look finds checkpoints that are new, oldest first, and those that are cut
// short. settled says that nothing is being written any more, so that one look
// is enough.
func (s *shelf) look(settled bool) (added []Checkpoint, broken []error) {
	if s.pattern == "." {
		return nil, nil
	}
	found := s.find()
	s.known = slices.DeleteFunc(s.known, func(c Checkpoint) bool { return !same(found[c.Step], c) })
	for _, c := range found {
		if slices.ContainsFunc(s.known, func(k Checkpoint) bool { return k.Step == c.Step }) {
			continue
		}
		if !settled && !same(s.seen[c.Step], c) || same(s.refused[c.Step], c) {
			continue
		}
		if err := s.sound(c); err != nil {
			s.refused[c.Step] = c
			broken = append(broken, fmt.Errorf("checkpoint %s is cut short: %w", c.Path, err))
			continue
		}
		added = append(added, c)
	}
	s.seen = found
	slices.SortFunc(added, byStep)
	s.known = append(s.known, added...)
	slices.SortFunc(s.known, byStep)
	return added, broken
}

func byStep(a, b Checkpoint) int { return cmp.Compare(a.Step, b.Step) }

// same reports whether nothing has changed between two looks.
func same(a, b Checkpoint) bool {
	return a.Size == b.Size && a.Saved.Equal(b.Saved) && slices.Equal(a.files, b.files)
}

// newest returns the newest checkpoint below a step.
func (s *shelf) newest(below int64) (Checkpoint, bool) {
	for _, c := range slices.Backward(s.known) {
		if c.Step < below {
			return c, true
		}
	}
	return Checkpoint{}, false
}

// find returns all that the pattern means, by step. Files that come and go
// meanwhile are no error.
func (s *shelf) find() map[int64]Checkpoint {
	found := map[int64]Checkpoint{}
	for _, name := range s.names() {
		size, saved, err := s.measure(name)
		if err != nil {
			continue
		}
		step := stepOfName(path.Base(name))
		c := found[step]
		c.Step, c.Size = step, c.Size+size
		c.files = append(c.files, name)
		if saved.After(c.Saved) {
			c.Saved = saved
		}
		found[step] = c
	}
	for step, c := range found {
		slices.Sort(c.files)
		c.Path = filepath.Join(s.root.Name(), filepath.FromSlash(nameOf(c.files)))
		found[step] = c
	}
	return found
}

// names returns all names that the pattern means, and those of the other files
// of bundles.
func (s *shelf) names() []string {
	matches, err := fs.Glob(s.root.FS(), s.pattern)
	if err != nil {
		return nil
	}
	names := slices.DeleteFunc(matches, isForeign)
	dirs := map[string]bool{}
	for _, name := range names {
		if shardTail.MatchString(name) {
			dirs[path.Dir(name)] = true
		}
	}
	for dir := range dirs {
		entries, err := fs.ReadDir(s.root.FS(), dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			prefix := shardTail.ReplaceAllString(name, "")
			if prefix != name && slices.ContainsFunc(matches, func(m string) bool { return shardTail.ReplaceAllString(m, "") == prefix }) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// measure returns the size of a file, or of all in a folder, and when it was
// last written.
func (s *shelf) measure(name string) (size int64, saved time.Time, err error) {
	info, err := s.root.Lstat(name)
	if err != nil {
		return 0, time.Time{}, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return 0, time.Time{}, errors.New("a link, or no file")
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

// rotate deletes what no policy wants, and returns it. The newest stays.
func (s *shelf) rotate() (deleted []Checkpoint, err error) {
	if len(s.policy) == 0 {
		return nil, nil
	}
	numbered := slices.DeleteFunc(slices.Clone(s.known), func(c Checkpoint) bool { return c.Step == NoStep })
	if len(numbered) < 2 {
		return nil, nil
	}
	stored := make([]trainerd.StoredCheckpoint, len(numbered))
	for i, c := range numbered {
		stored[i] = trainerd.StoredCheckpoint{Prefix: c.Path, Step: c.Step, Saved: c.Saved}
	}
	wanted := make([]bool, len(numbered))
	wanted[len(wanted)-1] = true
	for _, p := range s.policy {
		for i, why := range p.Keep(stored) {
			wanted[i] = wanted[i] || why != ""
		}
	}
	for i, c := range numbered {
		if wanted[i] || s.pinned(c) {
			continue
		}
		if e := s.remove(c); e != nil {
			err = errors.Join(err, e)
			continue
		}
		deleted = append(deleted, c)
	}
	return deleted, err
}

// remove deletes a checkpoint. Behind the root, no name and no link leads out
// of the logdir.
func (s *shelf) remove(c Checkpoint) error {
	for _, name := range slices.Backward(c.files) { // an index before its data
		if err := s.root.RemoveAll(name); err != nil {
			return err
		}
	}
	s.known = slices.DeleteFunc(s.known, func(k Checkpoint) bool { return k.Step == c.Step })
	return nil
}

// pinned errs on the side of keeping.
func (s *shelf) pinned(c Checkpoint) bool {
	rel, err := filepath.Rel(s.root.Name(), c.Path)
	names := append(slices.Clone(c.files), filepath.ToSlash(rel))
	return err != nil || slices.ContainsFunc(names, func(name string) bool {
		_, err := s.root.Lstat(name + pinSuffix)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// pin protects a checkpoint.
func (s *shelf) pin(c Checkpoint) error { return os.WriteFile(c.Path+pinSuffix, nil, 0o666) }

// pinSuffix ends the name of a file that protects a checkpoint, as for those
// that this project writes itself.
const pinSuffix = ".pin"

// isForeign reports whether a name is no checkpoint of the program whatever the
// pattern says: what is being written, and what trainerd and TensorFlow keep in
// a logdir.
func isForeign(name string) bool {
	base := path.Base(name)
	for _, end := range []string{".tmp", ".part", ".partial", "~", pinSuffix} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return true
		}
	}
	return strings.Contains(base, "tfevents") || strings.HasPrefix(base, "trainerd.") ||
		base == "checkpoint" || strings.HasPrefix(base, "run-report.")
}

var (
	namedStep = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:global_?)?step[-_=]?(\d+)`)
	numbers   = regexp.MustCompile(`\d+`)
	shardTail = regexp.MustCompile(`\.(?:index|meta|data-\d{5}-of-\d{5})$`)
	extension = regexp.MustCompile(`(?:\.[A-Za-z][A-Za-z0-9]*)+$`)
)

// stepEnd returns the part of a base name up to the end of its step, and the
// step's digits.
func stepEnd(base string) (head, digits string) {
	stem := shardTail.ReplaceAllString(base, "")
	if m := namedStep.FindStringSubmatchIndex(stem); m != nil {
		return stem[:m[3]], stem[m[2]:m[3]]
	}
	stem = extension.ReplaceAllString(stem, "")
	all := numbers.FindAllStringIndex(stem, -1)
	if len(all) == 0 {
		return "", ""
	}
	last := all[len(all)-1]
	return stem[:last[1]], stem[last[0]:last[1]]
}

// stepOfName returns the step in the base name of a checkpoint, or NoStep.
func stepOfName(base string) int64 {
	_, digits := stepEnd(base)
	step, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return NoStep
	}
	return step
}

// nameOf returns what names a checkpoint with these files: the only one, what
// all begin with up to the step, or the first.
func nameOf(files []string) string {
	first := files[0]
	if len(files) == 1 && !shardTail.MatchString(first) {
		return first
	}
	head, _ := stepEnd(path.Base(first))
	prefix := path.Join(path.Dir(first), head)
	for _, f := range files {
		if head == "" || !strings.HasPrefix(f, prefix) {
			return first
		}
	}
	return prefix
}

// Look returns the sound checkpoints in a logdir that a pattern means, oldest
// first.
func Look(logdir, pattern string) ([]Checkpoint, error) {
	if pattern == "" {
		return nil, nil
	}
	abs, err := filepath.Abs(logdir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	found, _ := newShelf(root, pattern, nil).look(true)
	return found, nil
}
