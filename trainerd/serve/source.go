package serve

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/predict"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

// Source holds the current model of a logdir, of a SavedModel, or of a folder of
// SavedModels with numbers for names; the highest is the current one.
type Source struct {
	path    string
	options predict.Options
	log     *slog.Logger

	mu      sync.Mutex
	current *held
	state   string // of the files that current was loaded from
	refused string // state of the files that could not be loaded
}

// held is a model with the number of those who use it, the Source included.
type held struct {
	*predict.Model
	version int64
	users   int
}

// NewSource loads the model. The caller must close the Source.
func NewSource(ctx context.Context, path string, o predict.Options, log *slog.Logger) (*Source, error) {
	o.Logger = log
	s := &Source{path: path, options: o, log: log}
	if _, err := s.refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Watch loads newer models as they appear, until ctx is done.
func (s *Source) Watch(ctx context.Context, every time.Duration) {
	tick, said := time.NewTicker(every), ""
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch changed, err := s.refresh(ctx); {
		case err != nil && err.Error() == said: // it is tried again until it can be read
		case err != nil:
			said = err.Error()
			s.log.Warn("a newer model cannot be loaded; the current one stays", "err", err)
		case changed:
			s.log.Info("loaded", "model", s.source(), "version", s.Version())
		}
	}
}

// refresh loads the model unless it is the current one. A model that could not be
// loaded is tried again when its files have changed, or where they could not be read.
func (s *Source) refresh(ctx context.Context) (changed bool, err error) {
	dir, version, state := s.look()
	s.mu.Lock()
	same := s.current != nil && (state == "" || state == s.state || state == s.refused)
	s.mu.Unlock()
	if same {
		return false, nil
	}
	m, err := predict.Open(ctx, dir, s.options)
	if err != nil {
		if !ckptdir.IsUnreadable(err) {
			s.mu.Lock()
			s.refused = state
			s.mu.Unlock()
		}
		return false, err
	}
	if m.Step >= 0 {
		version = m.Step
	}
	s.mu.Lock()
	old := s.current
	s.current, s.state, s.refused = &held{Model: m, version: version, users: 1}, state, ""
	s.mu.Unlock()
	if old != nil {
		s.release(old)
	}
	return true, nil
}

// look returns where the model is to be loaded from, and what would change if
// another one were there: "" when nothing can be seen.
func (s *Source) look() (dir string, version int64, state string) {
	if savedmodel.Is(s.path) {
		version, _ = numbered(s.path)
		return s.path, version, stamp(s.path, "saved_model.pb", "saved_model.pbtxt")
	}
	if dir, version = highest(s.path); dir != "" {
		return dir, version, dir + stamp(dir, "saved_model.pb", "saved_model.pbtxt")
	}
	best := filepath.Join(s.path, logdir.BestDir)
	return s.path, 0, stamp(best, ckptdir.StateName, logdir.BestFile) + "|" + stamp(s.path, ckptdir.StateName)
}

// highest returns the SavedModel with the highest number below a folder.
func highest(path string) (dir string, version int64) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", 0
	}
	for _, e := range entries {
		sub := filepath.Join(path, e.Name())
		if n, ok := numbered(sub); ok && (dir == "" || n > version) && savedmodel.Is(sub) {
			dir, version = sub, n
		}
	}
	return dir, version
}

func numbered(path string) (int64, bool) {
	n, err := strconv.ParseInt(filepath.Base(path), 10, 64)
	if err != nil || n < 0 {
		return 1, false
	}
	return n, true
}

// stamp identifies a version of files by their times and sizes.
func stamp(dir string, names ...string) (all string) {
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return ""
		}
		all += "|" + name + info.ModTime().Format(time.RFC3339Nano) + strconv.FormatInt(info.Size(), 10)
	}
	return all
}

// use returns the current model, which is to be released.
func (s *Source) use() *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.users++
	return s.current
}

// release closes a model that nobody uses any more.
func (s *Source) release(h *held) {
	s.mu.Lock()
	h.users--
	unused := h.users == 0
	s.mu.Unlock()
	if unused {
		if err := h.Close(); err != nil {
			s.log.Warn("a model could not be closed", "model", h.Source, "err", err)
		}
	}
}

// Version returns the version of the current model.
func (s *Source) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.version
}

func (s *Source) source() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Source
}

// Close ends the use of the model. Requests must have ended.
func (s *Source) Close() {
	s.mu.Lock()
	h := s.current
	s.mu.Unlock()
	s.release(h)
}
