// Package tensorboard starts real TensorBoard with the data server of tfevents.
package tensorboard

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// BinaryVariable is what TensorBoard looks at for a data server.
const BinaryVariable = "TENSORBOARD_DATA_SERVER_BINARY"

// stopGrace is how long TensorBoard may take to end after it was asked to.
const stopGrace = 10 * time.Second

// Command says how TensorBoard is started.
type Command struct {
	Logdirs    []string // one or more, each DIR, or NAME:DIR[,NAME:DIR]...
	Args       []string // further ones for TensorBoard
	DataServer string   // path of the tfevents command; "" means to find it
	Stdout     io.Writer
	Stderr     io.Writer
}

// Split parts the arguments of a command line: directories, and after them, from
// the first flag on, what is for TensorBoard.
func Split(args []string) (logdirs, flags []string) {
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if i < 0 {
		return args, nil
	}
	return args[:i], args[i:]
}

// Run runs TensorBoard until it ends, or until ctx ends: then it is asked to
// stop. The error is TensorBoard's, or says what is not installed.
func Run(ctx context.Context, c *Command) error {
	program, err := find()
	if err != nil {
		return err
	}
	server := c.DataServer
	if server == "" {
		if server, err = findServer(); err != nil {
			return err
		}
	}
	logdir, cleanup, err := oneDir(c.Logdirs)
	if err != nil {
		return err
	}
	defer cleanup()
	args := append(program[1:len(program):len(program)], "--logdir="+logdir, "--load_fast=true")
	cmd := exec.CommandContext(ctx, program[0], append(args, c.Args...)...)
	cmd.Env = append(os.Environ(), BinaryVariable+"="+server)
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	if err := cmd.Start(); err != nil {
		return err
	}
	defer system.KeepReapingExcept(cmd.Process.Pid)()
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// find returns the command line that starts TensorBoard.
func find() ([]string, error) {
	if path, err := exec.LookPath("tensorboard"); err == nil {
		return []string{path}, nil
	}
	python, err := exec.LookPath("python3")
	if err == nil && exec.Command(python, "-c", "import tensorboard.main").Run() == nil {
		return []string{python, "-m", "tensorboard.main"}, nil
	}
	return nil, errors.New("TensorBoard is not installed: `pip install tensorboard`, or put its folder into PATH")
}

// findServer returns the tfevents command of this installation: the one in the
// folder of the running program, or one in PATH.
func findServer() (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), "tfevents"+filepath.Ext(self))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath("tfevents")
	if err != nil {
		return "", errors.New("the command tfevents is not installed, neither next to this one nor in PATH")
	}
	return filepath.Abs(path)
}
