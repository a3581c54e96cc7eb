package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// A run's ID is a random text in the logdir, by which it knows its model on servers. The
// second line of the file is the number of the folder in its file system: a copy of a logdir
// is another run, and must not take over the model that the original trains.
const runIDFile = "run-id"

// maxRunID bounds what is read of that file.
const maxRunID = 4 << 10

// readID returns the ID in the logdir, "" for none. A worker may see the folder by another
// number than the chief.
func (t *Task) readID() (string, error) {
	text, err := atomicfile.ReadFileLimit(nil, filepath.Join(t.config.Logdir, runIDFile), maxRunID, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id, folder, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n")
	if id == "" || t.config.Supervisor.IsChief && folder != "" && folder != folderNumber(t.config.Logdir) {
		return "", nil
	}
	return id + "\n", nil
}

// runID returns the ID in the logdir, which it makes if there is none.
func (t *Task) runID() (string, error) {
	id, err := t.readID()
	if id != "" || err != nil {
		return id, err
	}
	word := make([]byte, 16)
	rand.Read(word)
	id = hex.EncodeToString(word) + "\n"
	return id, t.writeID(id)
}

func (t *Task) writeID(id string) error {
	name := filepath.Join(t.config.Logdir, runIDFile)
	return atomicfile.WriteFile(t.FS, name, []byte(id+folderNumber(t.config.Logdir)+"\n"))
}

// KeepRunID writes the ID of the model into a logdir that was deleted and made again:
// without it no new session of a worker, nor of a chief, would find the model.
func (t *Task) KeepRunID() error {
	id, _ := t.id.Load().(string)
	if _, err := os.Stat(filepath.Join(t.config.Logdir, runIDFile)); id == "" || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return t.writeID(id)
}
