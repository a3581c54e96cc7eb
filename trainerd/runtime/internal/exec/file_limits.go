package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/glob"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// path resolves a file name of the graph against the session's directory. A
// session that is limited to certain directories gets the name that is left
// when all links are followed, so that none can lead out of them.
func (s *Session) path(name string) (string, error) {
	path := name
	if s.dir != "" && !filepath.IsAbs(name) {
		path = filepath.Join(s.dir, name)
	}
	if s.within == nil {
		return path, nil
	}
	path, err := followLinks(path)
	if err != nil {
		return "", err
	}
	for _, dir := range s.within {
		root, err := followLinks(dir)
		if err != nil {
			return "", err
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return path, nil
		}
	}
	return "", &session.OpError{Code: tfpb.Code_PERMISSION_DENIED,
		Message: fmt.Sprintf("%s: this session may use files in %s only", name, strings.Join(s.within, ", "))}
}

// followLinks returns the absolute name of a file without links. The last
// parts of it need not be there.
func followLinks(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s: a link to what is not there: %w", path, fs.ErrPermission)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "", err
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// globs are the characters that make a name a pattern.
const globs = `*?[\`

// CheckpointPath is path for the prefix of a checkpoint, or a pattern of one.
// No link that may be one of its files may lead out.
func (c *KernelContext) CheckpointPath(prefix string) (string, error) {
	path, err := c.run.sess.path(prefix)
	if err != nil {
		return "", c.FileError(err)
	}
	if c.run.sess.within == nil {
		return path, nil
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", c.FileError(err)
	}
	base := filepath.Base(path)
	if i := strings.IndexAny(base, globs); i >= 0 {
		base = base[:i]
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 || !strings.HasPrefix(e.Name(), base) {
			continue
		}
		if _, err := c.run.sess.path(filepath.Join(filepath.Dir(path), e.Name())); err != nil {
			return "", c.FileError(err)
		}
	}
	return path, nil
}

// MatchingFiles returns the names of files that match a pattern; of a session that
// is limited to certain directories, those in them.
func (c *KernelContext) MatchingFiles(pattern string) ([]string, error) {
	sess := c.run.sess
	path := pattern
	if sess.dir != "" && !filepath.IsAbs(pattern) {
		path = filepath.Join(glob.Escape(sess.dir), pattern)
	}
	if sess.within != nil {
		fixed := pattern
		if i := strings.IndexAny(pattern, globs); i >= 0 {
			fixed = filepath.Dir(pattern[:i] + "x")
		}
		if _, err := sess.path(fixed); err != nil {
			return nil, c.FileError(err)
		}
	}
	found, err := filepath.Glob(path)
	if err != nil {
		return nil, c.Invalid("pattern %q: %v", pattern, err)
	}
	var allowed []string
	for _, name := range found {
		if _, err := sess.path(name); err == nil {
			allowed = append(allowed, sess.nameAs(pattern, name))
		}
	}
	return allowed, nil
}

// nameAs returns the name of a file found by a pattern as TensorFlow gives it:
// from where the pattern starts, and with the current directory that it puts
// before a pattern without any.
func (s *Session) nameAs(pattern, found string) string {
	if filepath.IsAbs(pattern) {
		return found
	}
	i := strings.IndexAny(pattern, globs)
	if i < 0 {
		return pattern
	}
	if rel, err := filepath.Rel(s.dir, found); s.dir != "" && err == nil {
		found = rel
	}
	if fixed := pattern[:i]; !strings.Contains(fixed, "/") || strings.HasPrefix(fixed, "./") {
		return "./" + found
	}
	return found
}

// FileError gives an error of a file the code that TensorFlow gives it.
func (c *KernelContext) FileError(err error) error {
	code := tfpb.Code_UNKNOWN
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ckptfmt.ErrNotFound):
		code = tfpb.Code_NOT_FOUND
	case errors.Is(err, fs.ErrPermission):
		code = tfpb.Code_PERMISSION_DENIED
	case errors.Is(err, ckptfmt.ErrChecksum):
		code = tfpb.Code_DATA_LOSS
	}
	var op *session.OpError
	if errors.As(err, &op) {
		code = op.Code
	}
	if err == error(op) && op.Node == "" && op.Err == nil { // the code is said once
		return &session.OpError{Code: code, Node: c.step.name, Op: c.Op(), Message: op.Message}
	}
	var corrupt *ckptfmt.CorruptError
	if errors.As(err, &corrupt) {
		code = tfpb.Code_DATA_LOSS
	}
	return &session.OpError{Code: code, Node: c.step.name, Op: c.Op(), Err: err}
}

// ResolvePath resolves a file name of the graph.
func (c *KernelContext) ResolvePath(name string) (string, error) { return c.run.sess.path(name) }

// ResolvePath resolves a file name of the graph.
func (b *OpConstruction) ResolvePath(name string) (string, error) { return b.sess.path(name) }
