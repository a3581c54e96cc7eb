package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// checkLogdir says why a run could not write to its logdir. It makes nothing.
func checkLogdir(c *config.Config) error {
	if !c.Supervisor.IsChief || c.Logdir == "" {
		return nil
	}
	dir := config.Absolute(c.Logdir)
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) { // a run makes it
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	switch {
	case err != nil:
	case !info.IsDir():
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("it is not a directory")}
	default:
		err = writable(dir)
	}
	if err == nil && dir == config.Absolute(c.Logdir) {
		err = errors.Join(checkLockFile(dir), notALink(filepath.Join(dir, evalDir)), checkNames(c, dir))
	}
	if err != nil {
		return fmt.Errorf("logdir %s is not writable: %w; change its permissions and those of its files, or use another logdir", c.Logdir, err)
	}
	return nil
}

// checkNames says which files and folders that a run writes in its logdir cannot be
// there, for there is something else. A program has names of its own.
func checkNames(c *config.Config, dir string) error {
	if c.IsChild() {
		return nil
	}
	folders := []string{evalDir}
	if c.Eval.KeepBest > 0 {
		folders = append(folders, logdir.BestDir)
	}
	err := new(checkpoint.Saver).CheckPath(filepath.Join(dir, c.Supervisor.CheckpointBasename), 0)
	for _, name := range folders {
		name = filepath.Join(dir, name)
		if info, e := os.Stat(name); e == nil && !info.IsDir() {
			err = errors.Join(err, &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR})
		}
	}
	return err
}

// checkLockFile opens the lock of a logdir as a run would, if there is one.
func checkLockFile(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, logdir.LockFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}
