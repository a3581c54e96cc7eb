package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/tomlguard"
)

// The config that trainerd keeps in the logdir of a run, and in that of another
// program, which may have a config.toml of its own.
const (
	configName        = "config.toml"
	programConfigName = "trainerd.config.toml"
)

// keeping is which checkpoints of a logdir the config of its run keeps.
type keeping struct {
	Supervisor struct {
		MaxToKeep int     `toml:"max_to_keep"`
		KeepEvery float64 `toml:"keep_checkpoint_every_n_hours"`
		KeepSteps []int64 `toml:"keep_steps"`
	}
	Child struct {
		Checkpoints string
		Metric      string
		Mode        string
		KeepBest    int `toml:"keep_best"`
	}
	everySet bool
}

// readKeeping reads what the config of a run keeps, nil where there is none.
func readKeeping(dir string) (*keeping, error) {
	name := filepath.Join(dir, programConfigName)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		name = filepath.Join(dir, configName)
		info, err = os.Stat(name)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() > tomlguard.MaxBytes) {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var k keeping
	k.Supervisor.MaxToKeep = 5
	about, err := tomlguard.Decode(string(text), &k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it is not known why checkpoints stay", name, err)
	}
	k.everySet = about.IsDefined("supervisor", "keep_checkpoint_every_n_hours")
	return &k, nil
}

// isProgram reports whether the checkpoints are those of another program.
func (k *keeping) isProgram() bool { return k.Child.Checkpoints != "" }

func (k *keeping) every() time.Duration {
	return time.Duration(k.Supervisor.KeepEvery * float64(time.Hour))
}

// keepsAll reports whether no checkpoint is ever removed.
func (k *keeping) keepsAll() bool { return k.Supervisor.MaxToKeep == 0 }

// byPolicies reports whether policies decide, and not a Saver's list.
func (k *keeping) byPolicies() bool { return k.isProgram() || len(k.Supervisor.KeepSteps) > 0 }

// policies are those that the run has.
func (k *keeping) policies() []retention.Policy {
	all := []retention.Policy{retention.Last(k.Supervisor.MaxToKeep)}
	if k.everySet {
		all = append(all, retention.Every(k.every()))
	}
	all = append(all, retention.Steps(k.Supervisor.KeepSteps))
	if c := k.Child; c.KeepBest > 0 {
		less := c.Mode == "min" || c.Mode == "" && (strings.HasSuffix(c.Metric, "loss") || strings.HasSuffix(c.Metric, "error"))
		all = append(all, retention.Best{Metric: c.Metric, Highest: !less, N: c.KeepBest})
	}
	return all
}
