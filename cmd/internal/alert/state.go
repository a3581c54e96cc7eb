package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// State is what a watch has reported, in a file.
type State struct {
	path string
	new  bool // there was no file
	data stateFile
}

// stateFile is the content of the file.
type stateFile struct {
	Version int       `json:"version"`
	Logdir  string    `json:"logdir"`
	Since   time.Time `json:"since"` // when the first watch began
	Fired   []fired   `json:"fired"`
}

// fired is a rule that was reported for a run.
type fired struct {
	Rule  string    `json:"rule"`
	Run   string    `json:"run"`
	Began float64   `json:"began"` // the run's first event, which distinguishes it from another of its name
	At    time.Time `json:"at"`
	Note  string    `json:"note,omitempty"` // why nobody was informed, if so
}

func (f fired) same(g fired) bool { return f.Rule == g.Rule && f.Run == g.Run && f.Began == g.Began }

const stateVersion = 1

// StatePath returns where the state of a log directory is kept if nothing else is
// said: below the user's directory for such files.
func StatePath(logdir string) (string, error) {
	abs, err := filepath.Abs(logdir)
	if err != nil {
		return "", err
	}
	base, err := stateDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(base, "tfevents", "watch", hex.EncodeToString(sum[:8])+".json"), nil
}

func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	switch runtime.GOOS {
	case "windows":
		return os.UserCacheDir() // %LocalAppData%
	case "darwin":
		return os.UserConfigDir() // Library/Application Support
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state"), err
}

// OpenState reads the state in a file, which need not exist.
func OpenState(path, logdir string, now time.Time) (*State, error) {
	abs, err := filepath.Abs(logdir)
	if err != nil {
		return nil, err
	}
	s := &State{path: path, data: stateFile{Version: stateVersion, Logdir: abs, Since: now}}
	found, err := readState(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.new = true
	case err != nil:
		return nil, err
	case found.Logdir != abs:
		return nil, fmt.Errorf("state %s is that of log directory %s; name another file with --state", path, found.Logdir)
	default:
		s.data = *found
	}
	return s, nil
}

func readState(path string) (*stateFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := new(stateFile)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("state %s: %w; delete it, and everything is reported again", path, err)
	}
	if f.Version != stateVersion {
		return nil, fmt.Errorf("state %s has version %d; want %d: was it written by a newer tfevents?", path, f.Version, stateVersion)
	}
	return f, nil
}

// has reports whether a rule was reported for a run.
func (s *State) has(f fired) bool { return slices.ContainsFunc(s.data.Fired, f.same) }

func (s *State) add(f fired) { s.data.Fired = append(s.data.Fired, f) }

// save writes the file, with what another watch of the directory has added meanwhile.
func (s *State) save() error {
	if other, err := readState(s.path); err == nil && other.Logdir == s.data.Logdir {
		for _, f := range other.Fired {
			if !s.has(f) {
				s.add(f)
			}
		}
		if other.Since.Before(s.data.Since) {
			s.data.Since = other.Since
		}
	}
	text, err := json.MarshalIndent(s.data, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	return atomicfile.WriteFile(nil, s.path, append(text, '\n'))
}
