package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/shell"
)

// Signal returns the one that makes the program save, 0 for none.
func (c Child) Signal() syscall.Signal { return saveSignals[c.SaveSignal] }

// ProgramOverride returns the override that makes a job run a program, whose name
// and arguments are words.
func ProgramOverride(words []string) Override {
	list, err := json.Marshal(words)
	if err != nil {
		list = nil // strings can always be written
	}
	// What JSON has for strings and lists, TOML has too.
	return Override{Flag: "-- " + shell.Join(words), Assignment: "child.command=" + string(list)}
}

// IsChild reports whether the job is done by another program.
func (c *Config) IsChild() bool {
	for key := range c.origins {
		if strings.HasPrefix(key, "child.") {
			return true
		}
	}
	return false
}

// resolveChild names a job without a config after its program, and puts its
// logdir below the current directory.
func (c *Config) resolveChild() {
	if c.Child.Nodes > 1 && c.Child.Node < 0 {
		c.Child.Node = nodeOfEnvironment(os.Getenv)
	}
	if c.IsChild() && c.origins["child.command"].flag == "" && c.Child.Dir == "" {
		c.Child.Dir = "." // from the config's folder
	}
	if c.file != "" || len(c.Child.Command) == 0 {
		return
	}
	name := c.Child.Command[0]
	for _, word := range c.Child.Command[1:] { // the script of an interpreter
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
			name = word
			break
		}
	}
	base := filepath.Base(name)
	if c.Name == "" {
		c.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if c.Logdir == "" {
		c.Logdir = filepath.Join("logs", c.Name)
	}
}

// nodeVariables are where schedulers and launchers say which machine of a job
// this is.
var nodeVariables = []string{"SLURM_NODEID", "JOB_COMPLETION_INDEX", "OMPI_COMM_WORLD_RANK", "NODE_RANK"}

// nodeOfEnvironment returns the number of this machine, -1 if nobody says it.
func nodeOfEnvironment(getenv func(string) string) int {
	for _, name := range nodeVariables {
		if n, err := strconv.Atoi(getenv(name)); err == nil {
			return n
		}
	}
	return -1
}

// ChildSaveEvery returns the time between two saves that the program is asked for. The default is
// 0, none, unlike that of other jobs, because a program may well save by itself.
func (c *Config) ChildSaveEvery() time.Duration {
	if !c.IsSet("supervisor.save_model_secs") {
		return 0
	}
	return c.Supervisor.SaveModelSecs.Duration()
}
