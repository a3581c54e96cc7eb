package found

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// maxPointer bounds what is read of a pointer.
const maxPointer = 64 << 10

// whose are the words that may precede the kind of number in a key.
const whose = "global|last|latest|newest|best|current|resume|checkpoint|checkpointed|saved|trained"

var (
	// pointerName matches the names of files that name a checkpoint: `latest` of DeepSpeed,
	// `latest_checkpointed_iteration.txt` of Megatron-LM, `last_checkpoint` of detectron2 and
	// mmengine, `latest.txt` of nanotron, `checkpoint` of TensorFlow, and similar names of other
	// programs.
	pointerName = lazyregexp.New(`(?i)(?:^|[^a-z])(?:latest|last|newest|best|current|resume|checkpoint)(?:[^a-z]|$)`)
	// keyedValue is a key with its value, in JSON, YAML and the text form of TensorFlow's state.
	keyedValue = lazyregexp.New(`(\w+)"?\s*[:=]\s*(?:"([^"\\\n]*)"|([\w./=+-]+))`)
	// stepKey and epochKey match keys of the step or the epoch of a checkpoint, but not those of
	// settings: max_steps, save_every_iter.
	stepKey  = lazyregexp.New(`(?i)^(?:(?:` + whose + `)_?)*(?:step|iter|iteration)$`)
	epochKey = lazyregexp.New(`(?i)^(?:(?:` + whose + `)_?)*epoch$`)
)

// A pointer is a small file by which the program finds a checkpoint: it contains nothing but a
// name, a path or a step, or has these as the values of keys.
type pointer struct {
	name string // below the logdir
	text string
}

// readPointer reads a file as a pointer, if it is one.
func (s *Store) readPointer(name string) (p pointer, ok bool) {
	base := path.Base(name)
	if !pointerName().MatchString(base) || integrity.IsUnfinished(base) || atomicfile.IsTemp(base) {
		return pointer{}, false
	}
	info, err := s.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPointer {
		return pointer{}, false
	}
	text, err := s.root.ReadFile(name) // what cannot be read names nothing
	return pointer{name, string(text)}, err == nil
}

// isState reports whether it is a state of TensorFlow's Saver, which package ckptdir corrects.
func (p pointer) isState() bool {
	return path.Base(p.name) == "checkpoint" && strings.Contains(p.text, "model_checkpoint_path:")
}

// saying is a way to name a checkpoint; it returns "" if the checkpoint has no such name.
type saying func(c Checkpoint) string

// A mention is a place in a pointer's text, in bytes, that names a checkpoint, and how it does.
type mention struct {
	from, to int
	say      saying
}

// mentions returns where a pointer names a checkpoint. In a file that the pattern matches, and that
// may itself be a checkpoint, only a path counts.
func (s *Store) mentions(p pointer, c Checkpoint) (all []mention) {
	word := strings.TrimSpace(p.text)
	from := strings.Index(p.text, word)
	if say := s.pathSaying(c, word); say != nil {
		return []mention{{from, from + len(word), say}}
	}
	if s.means([]string{p.name}) && !isForeign(p.name) {
		return nil
	}
	if say := numberSaying(c, word); say != nil {
		return []mention{{from, from + len(word), say}}
	}
	for _, at := range keyedValue().FindAllStringSubmatchIndex(p.text, -1) {
		from, to := max(at[4], at[6]), max(at[5], at[7])
		if say := s.sayingAt(c, p.text[at[2]:at[3]], p.text[from:to]); say != nil {
			all = append(all, mention{from, to, say})
		}
	}
	return all
}

// sayingAt returns how the value of a key names a checkpoint, or nil if it does not.
func (s *Store) sayingAt(c Checkpoint, key, value string) saying {
	if strings.HasPrefix(key, "all_") { // of TensorFlow's state, which names the newest once more
		return nil
	}
	if stepKey().MatchString(key) || c.countsEpochs() && epochKey().MatchString(key) {
		if say := numberSaying(c, value); say != nil {
			return say
		}
	}
	return s.pathSaying(c, value)
}

// numberSaying returns how a word is the number in the name of a checkpoint, or nil if it is not.
func numberSaying(c Checkpoint, word string) saying {
	if n, err := strconv.ParseInt(word, 10, 64); err != nil || c.Step == NoStep || n != c.Step {
		return nil
	}
	width := 0
	if word[0] == '0' {
		width = len(word)
	}
	return func(c Checkpoint) string {
		if c.Step == NoStep {
			return ""
		}
		return fmt.Sprintf("%0*d", width, c.Step)
	}
}

// pathSaying returns how a word is the last parts of the path of a checkpoint, or of one of its
// files, or nil if it is not.
func (s *Store) pathSaying(c Checkpoint, word string) saying {
	slashed := filepath.ToSlash(word)
	for end := len(slashed); end > 0; end = strings.LastIndexByte(slashed[:end], '/') {
		head, rest := slashed[:end], slashed[end:]
		i := slices.IndexFunc(append([]string{s.below(c.Path)}, c.files...), func(name string) bool { return s.endsIn(name, head) })
		if i < 0 {
			continue
		}
		dir := head[:len(head)-len(path.Base(head))]
		return func(to Checkpoint) string {
			name := s.below(to.Path)
			if i > 0 || len(c.files) == 1 {
				name = counterpart(c, max(i-1, 0), to)
			}
			if _, err := s.root.Lstat(path.Join(name, rest)); name == "" || rest != "" && err != nil {
				return ""
			}
			return dir + path.Base(name) + rest
		}
	}
	return nil
}

// endsIn reports whether the path of a file ends in some of its parts, or is an absolute one.
func (s *Store) endsIn(name, parts string) bool {
	whole := filepath.ToSlash(s.abs(name))
	if !filepath.IsAbs(parts) {
		return strings.HasSuffix(whole, "/"+path.Clean(parts))
	}
	if path.Clean(parts) == whole {
		return true
	}
	real, err := filepath.EvalSymlinks(s.root.Name()) // the program may have that of the logdir
	return err == nil && path.Clean(parts) == filepath.ToSlash(filepath.Join(real, name))
}

// below returns a path relative to the logdir, like the names of checkpoints' files.
func (s *Store) below(name string) string {
	rel, err := filepath.Rel(s.root.Name(), name)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(rel)
}

// counterpart returns the file of the checkpoint to that corresponds to a file of c, or "" if there
// is none.
func counterpart(c Checkpoint, file int, to Checkpoint) string {
	part := integrity.General(c.files[file])
	i := slices.IndexFunc(to.files, func(name string) bool { return integrity.General(name) == part })
	if i < 0 && len(c.files) > 1 {
		return ""
	}
	return to.files[max(i, 0)]
}

// rewritten returns the text of a pointer that names another checkpoint, or "" if that has no such
// name.
func (p pointer) rewritten(at []mention, to Checkpoint) string {
	text := p.text
	for _, m := range slices.Backward(at) {
		name := m.say(to)
		if name == "" {
			return ""
		}
		text = text[:m.from] + name + text[m.to:]
	}
	return text
}
