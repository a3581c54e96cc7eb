package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"github.com/trainerd/trainerd/ckptfmt/mapping"
)

// IsWarm reports whether a new training begins with values of a checkpoint.
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
	v.Require(w.Missing == MissingError || w.Missing == MissingInit, "warm_start.missing", fmt.Sprintf("want %q or %q, got %q", MissingError, MissingInit, w.Missing), "")
	for key, list := range map[string][]string{"warm_start.include": w.Include, "warm_start.exclude": w.Exclude} {
		for _, text := range list {
			_, err := regexp.Compile(text)
			v.Require(err == nil, key, fmt.Sprintf("%q is no regular expression: %v", text, err), "")
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
	v.Require(!v.config.IsRemote() || v.config.Cluster.CheckpointVia == "client", "warm_start.from", "needs a model that takes values from this process",
		`set cluster.checkpoint_via = "client"`)
}
