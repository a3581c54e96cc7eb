package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"github.com/trainerd/trainerd/ckptfmt/mapping"
)

// WarmStart says where a new training takes values of its variables from. It
// has no effect once the logdir has a checkpoint: the job continues from that.
// trainerd check shows what happens to each variable.
type WarmStart struct {
	// From is a checkpoint's prefix, a folder that has one, a SavedModel, or a file
	// of another format that ckpt reads, such as safetensors. A relative path starts
	// at the config's folder; one given with --set starts at the working directory.
	From string `toml:"from" path:"config"`
	// Map is a file of rules that rename tensors and change their layout, itself a
	// path like from, or the name of a ready map; see ckpt maps. Without it the names
	// are those of the variables.
	Map string `toml:"map" path:"or name"`
	// Include has regular expressions for the variables that get a value, which match any part of a
	// name. Default: all except the global step and optimizer state.
	Include []string `toml:"include"`
	// Exclude has regular expressions for variables that do not get one.
	Exclude []string `toml:"exclude"`
	// Missing says what happens to a variable for which from has no value of its
	// type and shape: "error", or "init" to keep its initial value.
	Missing string `toml:"missing"`
	// Reshape accepts a value of another shape with the same number of
	// elements.
	Reshape bool `toml:"reshape"`
	// Averages takes the moving average of each variable that has one, by the names
	// of tf.train.ExponentialMovingAverage.
	Averages bool `toml:"averages"`
}

// The values of warm_start.missing.
const (
	unmatchedError = "error"
	unmatchedInit  = "init"
)

// IsStrict reports whether it is an error if a variable gets no value.
func (w *WarmStart) IsStrict() bool { return w.Missing == unmatchedError }

// IsWarm reports whether a new training starts from the values of a checkpoint.
func (c *Config) IsWarm() bool { return c.WarmStart.From != "" }

func isReadyMap(name string) bool {
	_, ok := mapping.Ready(name)
	return ok
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (v *Validator) warmStart() {
	w := v.config.WarmStart
	if !v.config.IsWarm() {
		for _, key := range []string{"map", "include", "exclude", "missing", "reshape", "averages"} {
			v.Require(!v.config.IsSet("warm_start."+key), "warm_start."+key, "needs warm_start.from", "set that to the checkpoint, or remove it")
		}
		v.Require(!v.config.IsSet("warm_start.from"), "warm_start.from", "is empty", "set it to a checkpoint, or remove it")
		return
	}
	v.Require(w.IsStrict() || w.Missing == unmatchedInit, "warm_start.missing", fmt.Sprintf("want %q or %q, got %q", unmatchedError, unmatchedInit, w.Missing), "")
	for key, list := range map[string][]string{"warm_start.include": w.Include, "warm_start.exclude": w.Exclude} {
		for _, text := range list {
			_, err := regexp.Compile(text)
			v.Require(err == nil, key, fmt.Sprintf("%q is not a regular expression: %v", text, err), "")
		}
	}
	if w.Map != "" {
		_, err := mapping.Open(w.Map)
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "`ckpt maps` lists the ready maps"
		}
		v.Require(err == nil, "warm_start.map", fmt.Sprint(err), hint)
	}
	v.Require(!v.config.IsRemote() || v.config.Cluster.CheckpointVia == viaClient, "warm_start.from", "needs a model that takes values from this process",
		`set cluster.checkpoint_via = "client"`)
}
